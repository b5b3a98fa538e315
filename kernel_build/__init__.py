"""Compile the kernels of exhume ahead of time: their Python sources become one Cython module, which becomes one extension module.

readers     the kernels that read keys and values, written from the layouts
sources     the kernels in `src/exhume`, their types and the constants that they use
translate   one function: Python with arrays becomes Cython with pointers
unit        all functions, the wrappers that Python calls, and the file that holds them
"""
