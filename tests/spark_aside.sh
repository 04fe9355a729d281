#!/bin/sh
# PySpark is 450 MB to download, to build and to unpack: a quarter of a minute that the other tests
# take anyway. `start` installs it aside while they run, `run` runs the short tests on Spark with it.
# Neither fails because something outside of this project does: then it says why it skips. So it does
# where the machine is so busy that all tests together would take more than three minutes; SPARK=1
# runs them all the same.
#
#     sh tests/spark_aside.sh start|run PYTHON
set -u
python=$2
aside=build/pyspark
log=build/pyspark.log
started=build/tests.started
patience=40
most_seconds=118

is_there() { "$python" -c 'import importlib.util as u; exit(u.find_spec("pyspark") is None)'; }

install() {
    rm -rf "$aside.new" "$aside.failed"
    wanted=$("$python" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["spark"])')
    # To deflate the jars a second time takes twice as long as all the rest.
    stored="--use-pep517 --config-settings=--build-option=--compression=stored"
    # shellcheck disable=SC2086
    if "$python" -m pip install $stored --target "$aside.new" $wanted ||
        "$python" -m pip install --target "$aside.new" --upgrade $wanted; then
        mv "$aside.new" "$aside"
    else
        touch "$aside.failed"
    fi
}

skip() {
    echo "tests on Spark skipped: $1"
    exit 0
}

case $1 in
start)
    mkdir -p build
    date +%s >"$started"
    if command -v java >/dev/null && ! is_there && ! test -d "$aside"; then
        install >"$log" 2>&1 </dev/null &
        echo $! >"$aside.pid"
    fi
    ;;
run)
    command -v java >/dev/null || skip "no java is in the PATH"
    took=$(($(date +%s) - $(cat "$started" 2>/dev/null || date +%s)))
    if test "$took" -gt "$most_seconds" && test -z "${SPARK:-}"; then
        skip "the other tests took $took s; make test-spark runs them"
    fi
    if ! is_there; then
        while ! test -d "$aside"; do
            test -e "$aside.failed" && skip "PySpark cannot be installed (see $log)"
            kill -0 "$(cat "$aside.pid" 2>/dev/null)" 2>/dev/null || test -d "$aside" || skip "the installation of PySpark ended early (see $log)"
            test "$patience" -gt 0 || {
                kill "$(cat "$aside.pid")"
                skip "PySpark takes too long to install"
            }
            patience=$((patience - 1))
            sleep 1
        done
        PYTHONPATH=$PWD/$aside
        export PYTHONPATH
    fi
    exec "$python" -m pytest -m spark_short tests/test_spark*.py
    ;;
esac
