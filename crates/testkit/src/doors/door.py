# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scenes of the campaign `doors` through the Python package: reads names of files with scenes (languages.rs) from standard input, and prints
a JSON object for each packet, and an empty line at the end of a scene."""

import json
import sys

import paceline as pl


def tell(path):
    targets, options, first, context, runner, maps = [], {"queue": 0}, {}, {}, None, []
    for line in open(path):
        word, *rest = line.rstrip("\n").split("\t")
        if word == "program":
            targets.append(rest)
        elif word == "element":
            maps.append([rest[0], json.loads(rest[1]), json.loads(rest[2])])
        elif word == "seed":
            first["seed"] = int(rest[0])
        elif word == "queue":
            options["queue"] = int(rest[0])
        elif word == "context":
            name, _, index = rest[0].rstrip("]").partition("[")
            if index:
                context.setdefault(name, [0] * 5)[int(index)] = int(rest[1])
            else:
                context[name] = int(rest[1])
        elif word == "packet":
            if runner is None:
                try:
                    runner = build(targets, maps)
                except (pl.ObjectError, pl.ProgramError):
                    # The package does not load what the command runs, such as a program whose tail calls lead to one that is not supported.
                    print(json.dumps({"refused": True}))
                    break
            given = {"context": context} if context else {}
            try:
                run = runner.run(bytes.fromhex(rest[2]), ingress=int(rest[1]), time=int(rest[0]), **options, **first, **given)
                print(json.dumps(told(run)))
            except pl.FaultError:
                print(json.dumps({"verdict": "aborted"}))
            # Random numbers go on from packet to packet.
            first = {}
    print(flush=True)


def build(targets, maps):
    # Each object by itself, as commands do.
    programs = [pl.load(path, program=name) for path, name in targets]
    for name, key, value in maps:
        programs[0].maps[name][key] = value
    return programs[0] if len(programs) == 1 else pl.chain(programs, order="priority")


def told(run):
    told = {"verdict": run.verdict.name.lower(), "returns": run.code, "action": run.action, "length": len(run.data), "data": run.data.hex()}
    if run.redirect is not None:
        target = run.redirect
        told["redirect"] = f"interface {target.interface}" if target.map is None else f"{target.map}[{target.key}]"
        if target.flags:
            told["redirect"] += f" with flags {target.flags:#x}"
    if run.context is not None:
        told["context"] = {}
        for name, value in run.context.items():
            for member, number in [(f"{name}[{i}]", n) for i, n in enumerate(value)] if isinstance(value, list) else [(name, value)]:
                if number:
                    told["context"][member] = number
    return told


for line in sys.stdin:
    tell(line.rstrip("\n"))
