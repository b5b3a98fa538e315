"""Bytes and columns: everything that knows a format. Opens nothing but what it is given, and never writes beside the evidence."""
