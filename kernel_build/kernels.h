/* Arrays of kernels, conversions of numbers, and the instructions that Python and Cython cannot express. */
#ifndef EXHUME_KERNELS_H
#define EXHUME_KERNELS_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

/* An array is its memory and its size; an array of rows also has a number of columns, and the distance from one row to the next. */
#define ARRAY(name, element) typedef struct { element* data; long long size; } name;
#define ARRAY_OF_ROWS(name, element, row)                                                       \
  typedef struct { element* data; long long size; long long columns; long long stride; } name;  \
  static inline row name##_row(name rows, long long number) {                                   \
    row found = {rows.data + number * rows.stride, rows.columns};                              \
    return found;                                                                               \
  }
ARRAY(Bytes, unsigned char)
ARRAY(Floats, double)
ARRAY(Int16s, short)
ARRAY(Int32s, int)
ARRAY(Int64s, long long)
ARRAY(Words, unsigned long long)
ARRAY(UInt32s, unsigned int)
ARRAY_OF_ROWS(Rows, long long, Int64s)
ARRAY_OF_ROWS(Int32Rows, int, Int32s)
ARRAY_OF_ROWS(UInt32Rows, unsigned int, UInt32s)

/* Any number of arrays of bytes. */
typedef struct { Bytes* data; long long size; } ByteArrays;
static inline Bytes ByteArrays_row(ByteArrays arrays, long long number) { return arrays.data[number]; }

#define U64(value) ((unsigned long long)(value))
#define I64(value) ((long long)(value))
#define U32(value) ((unsigned int)(value))
#define I32(value) ((long long)(int)(value))
#define U16(value) ((long long)(unsigned short)(value))
#define I16(value) ((long long)(short)(value))
#define U8(value) ((unsigned char)(value))
#define MIN(left, right) ((left) < (right) ? (left) : (right))
#define MAX(left, right) ((left) > (right) ? (left) : (right))
#define ABS(value) ((value) < 0 ? -(value) : (value))
#define F64(value) ((double)(value))
#define IS_NAN(value) ((value) != (value))
#define NO_NUMBER __builtin_nan("")
#define BYTE_OF(text, index) ((unsigned char)(text)[index])
#define PREFETCH(data, index) __builtin_prefetch((data) + (index))

static inline long long FLOOR_DIVIDE(long long left, long long right) { return left / right - (left % right != 0 && (left < 0) != (right < 0)); }
static inline long long FLOOR_MODULO(long long left, long long right) { return left - FLOOR_DIVIDE(left, right) * right; }

/* A build that checks indexes notes an index that is out of its array, and uses the first element instead. */
#ifdef EXHUME_CHECKED
#define IS_CHECKED 1
static _Thread_local int index_is_out;
static inline long long checked_index(long long index, long long size) {
  if (index >= 0 && index < size) return index;
  index_is_out = 1;
  return 0;
}
#define AT(index, size) checked_index(index, size)
static inline int INDEX_IS_OUT(void) {
  int found = index_is_out;
  index_is_out = 0;
  return found;
}
#else
#define IS_CHECKED 0
#define AT(index, size) (index)
#define INDEX_IS_OUT() 0
#endif

/* The arrays that one call has opened: single ones, and one block for each sequence of arrays. */
#define MOST_VIEWS 96
typedef struct Block { struct Block* before; long long count; Py_buffer views[]; } Block;
typedef struct { int count; Block* blocks; Py_buffer views[MOST_VIEWS]; } Views;

static long long no_elements[8];

static int open_view(PyObject* array, int item_size, int dimensions, Py_buffer* view) {
  if (PyObject_GetBuffer(array, view, PyBUF_STRIDES) < 0) return -1;
  if (view->itemsize != item_size || view->ndim != dimensions)
    PyErr_Format(PyExc_TypeError, "an array with %d dimensions of %d bytes each was expected, not %d of %d", dimensions, item_size, view->ndim,
                 (int)view->itemsize);
  else if (view->shape[dimensions - 1] > 1 && view->strides[dimensions - 1] != item_size)
    PyErr_SetString(PyExc_TypeError, "the elements of an array, or of each of its rows, must follow one another");
  else
    return 0;
  PyBuffer_Release(view);
  return -1;
}

/* Open an array; `columns` and `stride` are NULL for one dimension. */
static int open_array(PyObject* array, int item_size, void** data, long long* size, long long* columns, long long* stride, Views* views) {
  int rows = columns != NULL;
  if (views->count == MOST_VIEWS) {
    PyErr_SetString(PyExc_TypeError, "too many arrays");
    return -1;
  }
  Py_buffer* view = &views->views[views->count];
  if (open_view(array, item_size, 1 + rows, view) < 0) return -1;
  views->count++;
  *data = view->len ? view->buf : no_elements;
  *size = view->shape[0];
  if (rows) {
    *columns = view->shape[1];
    *stride = view->strides[0] / item_size;
  }
  return 0;
}

/* Open each array of bytes in a sequence. */
static int open_arrays(PyObject* arrays, Bytes** data, long long* size, Views* views) {
  Py_ssize_t count = PySequence_Size(arrays);
  if (count < 0) return -1;
  Block* block = PyMem_Malloc(sizeof(Block) + count * (sizeof(Py_buffer) + sizeof(Bytes)));
  if (block == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  block->before = views->blocks;
  block->count = 0;
  views->blocks = block;
  *data = (Bytes*)(block->views + count);
  *size = count;
  while (block->count < count) {
    PyObject* array = PySequence_GetItem(arrays, block->count);
    Py_buffer* view = block->views + block->count;
    int is_open = array != NULL && open_view(array, 1, 1, view) == 0;
    Py_XDECREF(array);
    if (!is_open) return -1;
    Bytes found = {view->len ? view->buf : (void*)no_elements, view->shape[0]};
    (*data)[block->count++] = found;
  }
  return 0;
}

static void close_arrays(Views* views) {
  while (views->count) PyBuffer_Release(&views->views[--views->count]);
  while (views->blocks) {
    Block* block = views->blocks;
    while (block->count) PyBuffer_Release(&block->views[--block->count]);
    views->blocks = block->before;
    PyMem_Free(block);
  }
}

/* Instructions. The caller makes sure that each read stays within its array. */

static inline void native_touch(Bytes content, long long place) { (void)*(volatile unsigned char*)(content.data + AT(place, content.size)); }

/* Compilers make one load of a number that is read byte by byte only at some places. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LITTLE_64(value) __builtin_bswap64(value)
#define BIG_64(value) (value)
#define BIG_32(value) (value)
#define BIG_16(value) (value)
#else
#define LITTLE_64(value) (value)
#define BIG_64(value) __builtin_bswap64(value)
#define BIG_32(value) __builtin_bswap32(value)
#define BIG_16(value) __builtin_bswap16(value)
#endif

static inline unsigned long long native_word(Bytes buffer, long long position) {
  uint64_t found;
  memcpy(&found, buffer.data + AT(position, buffer.size - 7), 8);
  return LITTLE_64(found);
}

static inline void native_put_word(Bytes buffer, long long position, unsigned long long value) {
  uint64_t written = LITTLE_64((uint64_t)value);
  memcpy(buffer.data + AT(position, buffer.size - 7), &written, 8);
}

static inline long long native_int64(Bytes buffer, long long position) {
  uint64_t found;
  memcpy(&found, buffer.data + AT(position, buffer.size - 7), 8);
  return (long long)BIG_64(found);
}

static inline long long native_int32(Bytes buffer, long long position) {
  uint32_t found;
  memcpy(&found, buffer.data + AT(position, buffer.size - 3), 4);
  return (int32_t)BIG_32(found);
}

static inline long long native_int16(Bytes buffer, long long position) {
  uint16_t found;
  memcpy(&found, buffer.data + AT(position, buffer.size - 1), 2);
  return (int16_t)BIG_16(found);
}

#define RUN_BYTES 32

static inline long long native_are_equal(Bytes left, long long left_at, Bytes right, long long right_at) {
  unsigned long long a[4], b[4];
  left_at = AT(left_at, left.size - RUN_BYTES + 1), right_at = AT(right_at, right.size - RUN_BYTES + 1);
  memcpy(a, left.data + left_at, RUN_BYTES);
  memcpy(b, right.data + right_at, RUN_BYTES);
  return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) == 0;
}

static inline long long native_is_ascii(Bytes buffer, long long at) {
  unsigned long long a[4];
  at = AT(at, buffer.size - RUN_BYTES + 1);
  memcpy(a, buffer.data + at, RUN_BYTES);
  return ((a[0] | a[1] | a[2] | a[3]) & 0x8080808080808080ULL) == 0;
}

static inline void native_copy_run(Bytes source, long long start, Bytes target, long long place) {
  memcpy(target.data + AT(place, target.size - RUN_BYTES + 1), source.data + AT(start, source.size - RUN_BYTES + 1), RUN_BYTES);
}

static inline long long native_first_byte(unsigned long long word) { return __builtin_ctzll(word | 1ULL << 63) >> 3; }

#include "bus_errors.h"
#include "crc32c.h"

#endif
