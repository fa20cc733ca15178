#!/usr/bin/env bash
# Makes include/paceline.h and symbols.txt from the sources, or with --check compares them. Takes perl, and cbindgen of this version, which
# is installed below the target folder if it is not there.
set -euo pipefail
cd "$(dirname "$0")"
version=0.29.2
target=${CARGO_TARGET_DIR:-../../target}
cbindgen=$target/tools/bin/cbindgen
if [ "$("$cbindgen" --version 2>/dev/null)" != "cbindgen $version" ]; then
    cargo install cbindgen --version "$version" --locked --debug --quiet --root "$target/tools" --target-dir "$target/tools/build"
fi
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$cbindgen" --config cbindgen.toml --crate paceline-c --output "$made/paceline.h" --quiet
# cbindgen has no way to say that the types of src/raw.rs are pointers: each is a typedef, which is replaced by what it stands for.
perl -0pi -e '
    my %pointer;
    my $name = qr/(?:Text|Bytes|Room|Data|Memory|ErrorOut|(?:List|Out|Given|Filled)_\w+)/;
    $pointer{$2} = $1 while s{(?:^//.*\n)*^typedef ([^;(\n]*?)($name);\n\n?}{}m;
    sub replaced {
        my ($text) = @_;
        $text =~ s{const Text \*}{const char *const *}g;
        $text =~ s{\b($name)\b( ?)}{$pointer{$1} // die "no type $1"}ge;
        return $text;
    }
    for my $round (1 .. 3) {
        $_ = replaced($_) for values %pointer;
        $_ = join "", map { m{^\s*(?://|/?\*)} ? $_ : replaced($_) } split /^/m;
    }
' "$made/paceline.h"
grep -oE '\bpaceline_[a-z0-9_]+\(' "$made/paceline.h" | tr -d '(' | sort -u > "$made/symbols.txt"
if [ "${1-}" = --check ]; then
    diff -u include/paceline.h "$made/paceline.h"
    diff -u symbols.txt "$made/symbols.txt"
else
    cp "$made/paceline.h" include/paceline.h
    cp "$made/symbols.txt" symbols.txt
fi
