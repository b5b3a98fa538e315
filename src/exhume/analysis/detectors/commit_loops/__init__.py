"""Loops over commits.

columns    the columns of their tables
loops      the loops, which are kernels
"""
