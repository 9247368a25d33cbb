#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# hamlynctl on the host, where no module is loaded: the man page, the completion
# and the help tell the same, and so does the program.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

case ${1:-} in
-h | --help | '')
	echo "Usage: tools/hamlynctl/test/check.sh PROGRAM"
	exit 0
	;;
esac

PROGRAM=$1
[[ $PROGRAM == /* ]] || PROGRAM=../../$PROGRAM
OBJECTS=(nic context area slot nq terminus name stats user limit audit peer apply monitor top doctor metrics)
passed=0
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() { # NAME COMMAND...
	local name=$1 said
	shift
	if said=$("$@" 2>&1); then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		printf '%s\n' "$said" | sed 's/^/# | /'
		failed=$((failed + 1))
	fi
}

quiet() { # COMMAND...: it succeeds and says nothing
	local said
	said=$("$@" 2>&1) && [ -z "$said" ] && return 0
	printf '%s\n' "$said"
	return 1
}

fails_with() { # STATUS TEXT ARGUMENT...
	local want=$1 text=$2 said status=0
	shift 2
	said=$("$PROGRAM" "$@" 2>&1) || status=$?
	[ "$status" = "$want" ] && [[ $said == *"$text"* ]] && return 0
	printf 'status %s: %s\n' "$status" "$said"
	return 1
}

cannot_tell() { # OPTION
	local said status=0
	said=$("$PROGRAM" "$1" 2>&1 >/dev/full) || status=$?
	[ "$status" = 1 ] && [[ $said == *"cannot write the output"* ]] && return 0
	printf 'status %s: %s\n' "$status" "$said"
	return 1
}

# First words of the lines of a part of a help text
listed() { # HEADING ARGUMENT...
	local heading=$1
	shift
	"$PROGRAM" "$@" --help | awk -v heading="$heading" '
		$0 ~ heading { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}

verbs() { listed 'Verbs:$' "$1"; }
keywords() { listed '^Keywords:$' "$@"; }

# What the completion offers behind some words
offers() { # WORD...
	(
		# shellcheck source=/dev/null
		. ./hamlynctl.bash-completion
		COMP_WORDS=(hamlynctl "$@" '')
		COMP_CWORD=$(($# + 1))
		_hamlynctl
		printf '%s\n' "${COMPREPLY[@]}"
	)
}

same() { # WANTED OFFERED
	diff <(sort <<<"$1") <(sort <<<"$2")
}

in_manual() { # WORD...
	local word missing=()
	for word in "$@"; do
		grep -qwF -e "$word" <<<"$manual" || missing+=("$word")
	done
	[ ${#missing[@]} = 0 ] || { echo "missing: ${missing[*]}"; return 1; }
}

manual=$(mandoc -Tascii hamlynctl.8 | sed 's/.\x08//g')
check "the man page is well-formed" quiet mandoc -Tlint -W warning hamlynctl.8
check "the help lists the objects" same "$(printf '%s\n' "${OBJECTS[@]}")" "$(listed '^Objects:$')"
check "the completion offers the objects" same "$(printf '%s\n' "${OBJECTS[@]}")" "$(offers)"
for object in "${OBJECTS[@]}"; do
	[ "$object" != apply ] || continue # files: see below
	check "the completion offers the verbs of $object" same "$(verbs "$object")" "$(offers "$object")"
done
for line in 'nic add' 'nic set 0' 'nic feed 0' 'terminus set 0 1 2' 'limit set 0' 'limit reset 0' \
	'peer show 0' 'peer add 0' 'peer del 0'; do
	read -ra words <<<"$line"
	wanted=$(keywords "${words[@]}")
	check "the completion offers the keywords of $line" same "$wanted" "$(offers "${words[@]}")"
	mapfile -t all <<<"$wanted"
	check "the man page has the keywords of $line" in_manual "${all[@]}"
done
check "the completion offers values" same $'poll\ninline' "$(offers nic add engine)"
check "of fabrics, too" same $'loop\ntcp' "$(offers nic add fabric)"
check "and of their security" same $'clear\nencrypted' "$(offers nic add security)"
check "and files to apply" same "$(compgen -f)" "$(offers apply)"
check "and none for numbers" same '' "$(offers nic add index)"
for options in -d -jn --delay '-b --count' 'top --delay ='; do
	read -ra words <<<"$options"
	check "nor behind $options" same '' "$(offers "${words[@]}")"
done
for options in '-d 2' '-jbn 2 -p' '--delay = 2' '-d2'; do
	read -ra words <<<"$options"
	check "the objects behind $options" same "$(printf '%s\n' "${OBJECTS[@]}")" \
		"$(offers "${words[@]}")"
	check "and the verbs of nic behind $options nic" same "$(verbs nic)" \
		"$(offers "${words[@]}" nic)"
done
check "none behind -d 2 top" same '' "$(offers -d 2 top)"
# 1, if something is at fault: that is this machine's affair
looks() { # ARGUMENT...
	local said status=0
	said=$("$PROGRAM" "$@" doctor 2>&1) || status=$?
	[ "$status" -le 1 ] && printf '%s\n' "$said"
}

doctor_tells() {
	local said
	said=$(looks) && grep -qE '^(ok|note) +kernel +Linux ' <<<"$said" &&
		grep -qE '^(ok|FAULT) +shm ' <<<"$said"
}

doctor_tells_json() {
	looks --json | python3 -c 'import json, sys, jsonschema
jsonschema.validate(json.load(sys.stdin), json.load(open("schema/doctor.json")))'
}

check "doctor tells of this machine" doctor_tells
check "and in JSON" doctor_tells_json
metrics_are_good() {
	local said=$work/metrics
	"$PROGRAM" metrics | sed 's/^/# open /' >"$said" && echo "# open" >>"$said" &&
		"$PROGRAM" metrics write "$work/hamlyn.prom" &&
		sed 's/^/# text /' "$work/hamlyn.prom" >>"$said" && echo "# text" >>"$said" &&
		test/metrics.py "$said"
}

# What Prometheus's own tool says
promtool=${HAMLYN_CACHE:-../../.cache}/promtool/promtool
promtool_agrees() {
	"$promtool" check metrics <"$work/hamlyn.prom" &&
		"$promtool" check rules prometheus/hamlyn.rules.yml &&
		"$promtool" test rules prometheus/hamlyn.rules.test.yml
}

replaces_whole() {
	echo old >"$work/hamlyn.prom"
	chmod 600 "$work/hamlyn.prom"
	(umask 027 && "$PROGRAM" metrics write "$work/hamlyn.prom") &&
		[ "$(stat -c %a "$work/hamlyn.prom")" = 640 ] && grep -q hamlyn_up "$work/hamlyn.prom" &&
		[ "$(find "$work" -name 'hamlyn.prom*' | wc -l)" = 1 ]
}

# Whoever may write into the folder may have guessed the process's number
follows_no_link() {
	echo mine >"$work/victim"
	ln -s victim "$work/linked.prom"
	# shellcheck disable=SC2016 # for the shell inside
	if "$PROGRAM" metrics write "$work/linked.prom" || sh -c 'ln -s victim "$1/new.prom.$$" &&
			exec "$2" metrics write "$1/new.prom"' sh "$work" "$PROGRAM"; then
		echo "was written all the same"
		return 1
	fi
	[ "$(cat "$work/victim")" = mine ]
}

check "metrics are well-formed" metrics_are_good
check "and promtool agrees, and with the alerts" promtool_agrees
check "a file of metrics is replaced, with the mode of umask" replaces_whole
# Not /dev/null: a program that is wrong would replace the machine's
mkfifo "$work/pipe.prom"
check "what is no file is not" fails_with 1 'File exists' metrics write "$work/pipe.prom"
check "nor is a link followed" follows_no_link
check "nor what is nowhere" fails_with 1 'No such file' metrics write "$work/none/hamlyn.prom"
check "metrics has to be told where" fails_with 2 'write to which file' metrics write
mapfile -t all < <(test/metrics.py --families)
check "the man page has all metrics" in_manual "${all[@]}"
check "doctor takes no words" fails_with 2 'extra' doctor extra
if [ ! -e /sys/module/hamlyn ]; then
	check "without the module it says so" \
		fails_with 1 'the hamlyn module is not loaded (no netlink family "hamlyn")' nic show
fi
check "help that cannot be written is status 1" cannot_tell --help
check "and so is a version" cannot_tell --version
check "a wrong command line is status 2" fails_with 2 'object "x" is unknown' x
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
