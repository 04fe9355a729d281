/* Sorting and joining of posts, as Python sees them. */

#ifndef SO2DOCS_JOIN_H
#define SO2DOCS_JOIN_H

#include <Python.h>

PyObject *sort_posts(PyObject *module, PyObject *blocks);
PyObject *join_posts(PyObject *module, PyObject *args);

#endif
