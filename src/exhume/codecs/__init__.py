"""Bytes and columns: everything that knows a format. Opens only the files that the caller gives, and never writes beside the evidence."""
