#!/usr/bin/env bash
# The C library as its users get it: installed, found by pkg-config, used from C, C++ and Go, and under Valgrind.
#   check.sh            needs gcc, g++, pkg-config, go, valgrind, binutils
# The header and the symbols are compared with the sources, the interface with the list that is committed.
set -euo pipefail
cd "$(dirname "$0")"
root=$(realpath ../..)
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
say() { printf -- '-- %s\n' "$*"; }

say "header and symbols are those of the sources"
./header.sh --check

say "installed"
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
make --silent install PREFIX="$prefix"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib

say "the dynamic library exports the committed symbols and no others, under its soname"
nm -D --defined-only "$prefix/lib/libpaceline.so" | awk '$2 == "T" { print $3 }' | sort -u | diff -u symbols.txt -
abi=$(sed -n 's/^#define PACELINE_ABI_VERSION //p' include/paceline.h)
readelf -d "$prefix/lib/libpaceline.so" | grep -q "soname: \[libpaceline.so.$abi\]"

warnings=(-Wall -Wextra -Werror -g -O1)
flags=()
read -ra flags <<<"$(pkg-config --cflags --libs paceline)"
static=()
read -ra static <<<"$(pkg-config --cflags paceline) -Wl,-Bstatic -lpaceline -Wl,-Bdynamic -L$prefix/lib $(pkg-config --libs --static paceline | sed 's/-lpaceline//')"
gcc -std=c99 -pedantic-errors -fsyntax-only "${warnings[@]}" include/paceline.h
g++ -std=c++17 -pedantic-errors -fsyntax-only "${warnings[@]}" include/paceline.hpp
gcc -std=gnu11 "${warnings[@]}" -Wno-missing-field-initializers tests/library.c -o "$prefix/library" "${flags[@]}" -lpthread
gcc -std=gnu11 "${warnings[@]}" examples/unit_test.c -o "$prefix/unit_test" "${flags[@]}"
gcc -std=gnu11 "${warnings[@]}" examples/unit_test.c -o "$prefix/unit_test_static" "${static[@]}"
gcc -std=gnu11 "${warnings[@]}" examples/filter.c -o "$prefix/filter" "${flags[@]}"
g++ -std=c++17 "${warnings[@]}" examples/chain.cpp -o "$prefix/chain" "${flags[@]}"

say "the test in C"
"$prefix/library" "$root/examples"
say "examples"
"$prefix/unit_test" "$root/examples/firewall.o"
"$prefix/unit_test_static" "$root/examples/firewall.o"
! ldd "$prefix/unit_test_static" | grep -q libpaceline
counts() { awk '$1 ~ /^(aborted|drop|pass|tx|redirect)$/ { print $1, $2 }'; }
"$prefix/filter" "$root/examples/firewall.o" "$root/examples/traffic.pcap" | counts | tee "$prefix/verdicts"
(cd "$root" && cargo run --release --locked --quiet -- run examples/firewall.o --in examples/traffic.pcap) | counts |
    diff "$prefix/verdicts" -
"$prefix/chain" "$root/examples"
if command -v go >/dev/null; then
    (cd examples/go && CGO_ENABLED=0 go vet . && CGO_ENABLED=0 go build -o "$prefix/go" .)
    "$prefix/go" "$root/examples/firewall.o" firewall
else
    echo "SKIP the example in Go: go is not installed"
    [ "${PACELINE_REQUIRE_ALL-}" != 1 ]
fi

say "the test in C under Valgrind"
valgrind --quiet --smc-check=all --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
    "$prefix/library" "$root/examples"
