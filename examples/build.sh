#!/bin/bash
# Compiles the example programs, those of the command's tests and of the benchmarks, into the objects that are committed beside them.
#
#   examples/build.sh           rebuild in place
#   examples/build.sh --check   rebuild elsewhere and compare; exit 1 if a committed object differs
#
# Exit 2 when the compiler or its headers are missing: apt-get install clang-19 llvm-19 libbpf-dev linux-libc-dev
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

case "${1-}" in
"") check= ;;
--check) check=1 ;;
*) echo "usage: examples/build.sh [--check]" >&2; exit 2 ;;
esac

for tool in clang-19 llvm-strip-19; do
	command -v "$tool" >/dev/null || { echo "examples/build.sh: $tool is not installed" >&2; exit 2; }
done
[ -e /usr/include/bpf/bpf_helpers.h ] || { echo "examples/build.sh: libbpf-dev is not installed" >&2; exit 2; }

# The source path inside the object is relative to the repository, so that everybody builds the same bytes. DWARF goes,
# BTF with its source lines stays. A name says if it is for an older instruction set, NAME.v2.bpf.c, or optimized less, NAME.o1.bpf.c.
compile() {
	local cpu=v3 level=2
	case "$1" in *.v2.bpf.c) cpu=v2 ;; *.o1.bpf.c) level=1 ;; esac
	clang-19 -target bpf -mcpu=$cpu -O$level -g -Wall -Werror \
		"-ffile-prefix-map=$root=." -I "/usr/include/$(uname -m)-linux-gnu" \
		-c "$1" -o "$2"
	llvm-strip-19 -g "$2"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

status=0
for source in examples/*.bpf.c examples/tests/*.bpf.c crates/cli/tests/fixtures/*.bpf.c crates/bench/workloads/*.bpf.c crates/testkit/fixtures/*.bpf.c; do
	object=${source%.bpf.c}.o
	compile "$source" "$scratch/object"
	if [ -z "$check" ]; then
		mv "$scratch/object" "$object"
	elif ! cmp -s "$scratch/object" "$object"; then
		echo "$object is not what $source compiles to: run examples/build.sh" >&2
		status=1
	fi
done

# The fixtures of the loader have their own script, with the same arguments and statuses.
fixtures=crates/object/tests/fixtures/build.sh
if [ -x "$fixtures" ]; then
	"$fixtures" ${check:+--check} || status=$?
fi
exit $status
