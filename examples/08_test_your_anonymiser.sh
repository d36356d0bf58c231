#!/bin/sh
# Test your own anonymiser in one command: what do attackers still learn of who speaks?
#
#     sh examples/08_test_your_anonymiser.sh VOICES [OUT] [COMMAND]
#
# VOICES has a folder for each person, with two recordings or more. COMMAND is your program: it is
# given a WAV on its standard input and prints one. Without it, quieter.py below stands for it: a
# program that makes a voice quieter, which protects nobody, and the test says so. Give speech of other people with
# --background and a semi-informed attacker trains on it, too.
set -eu
voices=${1:?name a folder of voices: a folder a person, two recordings in each}
out=${2:-tested}
here=$(dirname "$0")
command=${3:-"${PYTHON:-python3} $here/quieter.py"}
monitor=${MONITOR:-monitor}

"$monitor" attack "$voices" -o "$out" --protector-command "$command" --features f0,voice \
    --trials 3 --segments 1,3
