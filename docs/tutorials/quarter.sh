#!/bin/sh
# Usage: quarter.sh [QUARTER]
# Update the questions, the changes, the index and the databases from the archives in QUARTER/.
set -eu
new=${1:-$(ls -d 20??-?? | tail -n 1)}
new=${new%/}
failed=0

# Run a command. If only some sites failed (exit code 3), go on with the others.
run() {
    "$@" || {
        code=$?
        [ "$code" -eq 3 ] || exit "$code"
        failed=1
    }
}

# questions/last has the last good output of each site with its index, as hard links.
mkdir -p questions/last
for output in questions/20??-??/*.jsonl.gz; do
    case $output in
    "questions/$new/"*) break ;; # Quarters are in order.
    esac
    index=${output%/*}/.${output##*/}.index
    [ ! -e "$output" ] || ln -f "$output" "$index" questions/last/
done

run so2docs convert "$new"/*.7z --output-dir "questions/$new" --site-field Site \
    --report "$new.json" --card --quiet
(cd "questions/$new" && sha256sum --check --quiet SHA256SUMS)
run so2docs diff questions/last "questions/$new" "changes/$new" --quiet
python3 update_index.py "changes/$new"
run so2docs sqlite "$new"/*.7z databases --update --quiet
exit "$failed"
