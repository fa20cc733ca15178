#!/usr/bin/env bash
# `paceline filter` against tcpdump, end to end: a capture in the page cache to a capture of what matches, by turns.
# Prints the best of the rounds. Usage: crates/bench/tcpdump.sh [PACELINE [BYTES [ROUNDS]]]
set -euo pipefail
cd "$(dirname "$0")/../.."
paceline=${1:-target/release/paceline} bytes=${2:-1000000000} rounds=${3:-5}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

# The shipped capture's records again and again, behind one header.
header=24
tail -c +$((header + 1)) examples/traffic.pcap >"$folder/records"
{
    head -c $header examples/traffic.pcap
    times=$((bytes / $(stat -c %s "$folder/records")))
    printf "$folder/records%.0s\n" $(seq "$times") | xargs cat
} >"$folder/capture"

seconds() {
    local TIMEFORMAT=%R
    { time "$@" >"$folder/told" 2>&1; } 2>&1
}

for expression in "port 22" "tcp port 22"; do
    rm -f "$folder/theirs" "$folder/ours"
    for _ in $(seq "$rounds"); do
        seconds tcpdump -r "$folder/capture" -w "$folder/tcpdump.pcap" "$expression" >>"$folder/theirs"
        seconds "$paceline" filter "$expression" -r "$folder/capture" -w "$folder/paceline.pcap" >>"$folder/ours"
    done
    cmp "$folder/tcpdump.pcap" "$folder/paceline.pcap"
    paste <(sort -n "$folder/theirs" | head -n 1) <(sort -n "$folder/ours" | head -n 1) |
        awk -v e="$expression" '{ printf "%s: tcpdump %.2f s, paceline %.2f s, ratio %.2f\n", e, $1, $2, $1 / $2 }'
done
