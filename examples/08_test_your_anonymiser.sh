#!/bin/sh
# Test your own anonymiser in one command: what do attackers still learn of who speaks?
#
#     sh examples/08_test_your_anonymiser.sh VOICES [OUT] [COMMAND] [OPTIONS]
#
# VOICES has a folder for each person, with two recordings or more. COMMAND is your program: it is
# given a WAV on its standard input and prints one. Without it quieter.py, beside this file, stands
# for it: it makes a voice quieter, which protects nobody, and the test says so. With
# --background OTHERS attackers learn from other people's protected speech, too.
set -eu
voices=${1:?name a folder of voices: a folder a person, two recordings in each}
out=${2:-tested}
here=$(dirname "$0")
command=${3:-"${PYTHON:-python3} $here/quieter.py"}
monitor=${MONITOR:-monitor}
[ $# -gt 3 ] && shift 3 || shift $#

"$monitor" attack "$voices" -o "$out" --anonymiser-command "$command" --features f0,voice \
    --trials 3 --segments 1,3 "$@"
