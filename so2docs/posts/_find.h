/* Values of ids in a map, as Python sees it. */

#ifndef SO2DOCS_FIND_H
#define SO2DOCS_FIND_H

#include <Python.h>

PyObject *find_values(PyObject *module, PyObject *args);

#endif
