# The machine code of the kernels, which `kernel_build` makes.

#: A digest of the sources that it was made of.
SOURCES: str
#: 2 where CRC-32C uses the instruction of the processor, 1 where it uses tables.
CRC32C_WAY: int
#: The kernels that Python has called; only a build that checks each index notes them.
CALLED: set[str]
