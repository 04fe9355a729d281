/* Joining of posts, as Python sees it. */

#ifndef SO2DOCS_JOIN_H
#define SO2DOCS_JOIN_H

#include <Python.h>

PyObject *join_records(PyObject *module, PyObject *args);

#endif
