#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Static checks, reported as TAP. Each check is one function named check_NAME
# with - written as _; what it prints is shown when it fails. A check whose tool
# is missing, or that finds no file to look at, fails: nothing is skipped silently.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
# shellcheck source-path=SCRIPTDIR source=analysers.sh
. "$(dirname "${BASH_SOURCE[0]}")/analysers.sh"

STATIC_DIR=$REPO_DIR/selftests/static
WORK_DIR=$REPO_DIR/build/static
MAX_COLUMNS=100
MAX_DIAGNOSTICS=200

CHECKS=(
	format spdx core-includes layers version-tests private-paths shellcheck codespell
	checkpatch kernel-doc public-api netlink-generated package-symbols abi versions conformance-table
	threat-catalogue documentation-paths build-help places in-tree out-of-tree w1-6.1 w1-7.2 kselftest kconfig refuses-32-bit cppcheck
)
# Run when they are named: they take minutes
SLOW_CHECKS=(gcc-analyzer gcc-analyzer-module clang-analyzer coccinelle)

usage() {
	cat <<EOF
Usage: selftests/static/check.sh [--list] [--without NAME]... [NAME]...

Runs all checks but ${SLOW_CHECKS[*]},
or those named; prints TAP and "N passed, N failed"; the exit
status is 0 when none failed.

  --list          prints the names of the checks
  --without NAME  all but this one
EOF
}

# ---- helpers ----

fail() {
	printf '%s\n' "$*"
	return 1
}

# What cannot be checked here: the last that a check says, and its status
left_out() { # WHY
	echo "SKIP $*"
	return 4
}

need_tool() { # TOOL SETUP-ARGUMENTS
	command -v "$1" >/dev/null || fail "$1 is missing; run: selftests/setup.sh $2"
}

need_helper() { # FILE of the kernel source
	[ -e "$CACHE/kselftest/$1" ] ||
		fail "$1 is not in the cache; run: selftests/setup.sh kselftest"
}

# tree_files [find expression]...: paths from the top of the tree, sorted
tree_files() {
	(cd "$REPO_DIR" && find . \( -path ./.git -o -path ./.cache -o -path ./build \) -prune -o \
		-type f \( "$@" \) -print) | sed 's#^\./##' | sort
}

c_files() { tree_files -name '*.c' -o -name '*.h'; }

# files_in PATTERN: of standard input, those that match; fails when none does
files_in() {
	grep -E "$1" || fail "no file to check matches $1"
}

# run_in_tree COMMAND...: file names come on standard input, one a line
run_in_tree() { (cd "$REPO_DIR" && tr '\n' '\0' | xargs -0 -r "$@"); }

# quiet COMMAND...: succeeds when the command does and prints nothing
quiet() {
	local output status=0
	output=$("$@" 2>&1) || status=$?
	[ -z "$output" ] || printf '%s\n' "$output"
	[ "$status" = 0 ] && [ -z "$output" ]
}

# ---- checks of the text ----

check_format() {
	local text code
	text=$(tree_files -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.md' -o -name '*.rst' \
		-o -name '*.yaml' -o -name '*.conf' -o -name '*.map' -o -name '*.in' -o -name 'Makefile' \
		-o -name '*.mk' -o -name 'Kbuild' -o -name 'Kconfig' -o -name '*.[1-9]' -o -path './.ci/run')
	code=$(c_files | files_in .) || return 1
	quiet format_text "$text" && quiet format_c "$code"
}

format_text() { # FILES
	# shellcheck disable=SC2016 # the $ are Perl's
	run_in_tree perl -ne '
		print "$ARGV:$.: white space at the end of the line\n" if /[ \t\r]+$/;
		print "$ARGV:$.: no newline at the end of the file\n" if eof && !/\n\z/;
		print "$ARGV:$.: blank line at the end of the file\n" if eof && /^\n\z/;
		close ARGV if eof;' <<<"$1"
}

format_c() { # FILES
	# shellcheck disable=SC2016 # the $ are Perl's
	MAX=$MAX_COLUMNS run_in_tree perl -ne '
		chomp(my $line = $_);
		1 while $line =~ s/\t/" " x (8 - $-[0] % 8)/e;
		print "$ARGV:$.: longer than $ENV{MAX} columns\n" if length($line) > $ENV{MAX};
		print "$ARGV:$.: indented with spaces\n" if /^ +[^ *\n]/ || /^ {8}/;
		print "$ARGV:$.: space before tab\n" if /^\t* +\t/;
		close ARGV if eof;' <<<"$1"
}

check_spdx() {
	local sources
	sources=$(tree_files -name '*.[chS]' -o -name '*.cc' -o -name '*.cpp' -o -name '*.sh' \
		-o -name '*.py' -o -name '*.pl' -o -name '*.mk' -o -name '*.map' -o -name 'Makefile' \
		-o -name 'Kbuild' -o -name 'Kconfig' -o -path './.ci/run' | files_in .) || return 1
	quiet spdx_lines "$sources"
}

spdx_lines() { # FILES
	local file want got
	while read -r file; do
		want=$(spdx_of "$file")
		got=$(head -n 2 "$REPO_DIR/$file" | sed -n 's/.*SPDX-License-Identifier: *//p' |
			sed 's# *\*/.*##' | head -n 1)
		[ "$got" = "$want" ] || printf '%s: has "%s", must have "%s"\n' "$file" "$got" "$want"
	done <<<"$1"
}

spdx_of() { # FILE
	case $1 in
	driver/core/*) echo 'GPL-2.0-only OR MIT' ;;
	uapi/*) echo '(GPL-2.0-only WITH Linux-syscall-note) OR MIT' ;;
	libhamlyn/*) echo MIT ;;
	*) echo GPL-2.0-only ;;
	esac
}

# The state machine of the NIC is compiled into the kernel and into programs: its only door is port.h
check_core_includes() {
	local files
	files=$(c_files | files_in '^driver/core/') || return 1
	files=$(grep -v '/port\.h$' <<<"$files") || return 0
	quiet foreign_includes "$files"
}

foreign_includes() { # FILES
	local file line name
	while IFS=: read -r file line name; do
		case $name in
		linux/hamlyn.h | uapi/linux/hamlyn.h) continue ;;
		*/*) ;;
		*) [ ! -e "$REPO_DIR/driver/core/$name" ] || continue ;;
		esac
		printf '%s:%s: includes %s; allowed: port.h, headers of driver/core, linux/hamlyn.h\n' \
			"$file" "$line" "$name"
	done < <(run_in_tree grep -HnE '^[[:blank:]]*#[[:blank:]]*include' <<<"$1" |
		sed -E 's/^([^:]*:[0-9]+):[^<"]*[<"]([^>"]*)[>"].*/\1:\2/')
}

# The layers of the library: a folder includes what stands before it, and of the lowest one
# only what is for all. What kinds of devices there are is known to the lowest two.
LAYERS=(low embedded manager message stream rendezvous channel server publish work)

check_layers() {
	quiet layers_of_library && quiet included_sources && quiet driver_folders && quiet driver_names &&
		quiet header_order libhamlyn/tempest/src && quiet header_order libhamlyn/ofi/src &&
		quiet layers_of_tool hamlyn-perf base load system measure report command &&
		quiet layers_of_tool hamlynctl base record object watch health
}

layers_of_library() {
	local folder file line name below=' ' upper=
	for folder in "${LAYERS[@]}"; do
		below+="$folder "
		[ "$folder" != manager ] || upper=upper-
		while IFS=: read -r file line name; do
			case $name in
			*/*) ;;
			*) [ -e "$REPO_DIR/driver/core/$name" ] ||
				echo "$file:$line: includes \"$name\"; name its folder"
			   [ ! "$upper" ] || echo "$file:$line: includes $name of driver/core"
			   continue ;;
			esac
			case $below in
			*" ${name%%/*} "*) ;;
			*) echo "$file:$line: $folder includes $name; allowed:$below" ;;
			esac
			case $upper$name in
			upper-low/low.h | upper-low/lock.h | upper-low/xxh.h) ;;
			upper-low/* | upper-embedded/*)
				echo "$file:$line: $name is not for $folder; low/low.h is" ;;
			esac
		done < <(local_includes "libhamlyn/src/$folder/")
	done
	run_in_tree grep -nE '\bh_dev_is_embedded\(|\bshm_[a-z]|->ops\b' < <(
		c_files | grep -E '^libhamlyn/src/(manager|message|stream|rendezvous|channel|server|publish|work)/') |
		sed 's/$/   : only low and embedded know kinds of devices/'
	tree_files -path './libhamlyn/src/*' -name '*.[ch]' | grep -vE \
		"^libhamlyn/src/($(IFS='|'; echo "${LAYERS[*]}"))/[^/]*\$" | sed 's/$/: in no layer/'
	true
}

# Folders of a tool in the order in which they stand upon each other; its top may use all of them.
# lib is what tools share.
layers_of_tool() { # TOOL FOLDER...
	local tool=tools/$1 folder below=' lib '
	shift
	for folder in "$@"; do
		below+="$folder "
		local_includes "$tool/$folder/" | while IFS=: read -r file line name; do
			[[ $below == *" ${name%%/*} "* ]] || echo "$file:$line: includes $name; allowed:$below"
		done
	done
}

# A source is included by a file that does nothing else, by unit tests and fuzz targets. The
# embedded device's sender has the core inlined.
included_sources() {
	local_includes '' '[^"]*\.c' |
		grep -vE '(^|/)build_[a-z_]*\.c:|^selftests/(unit|fuzz)/|^libhamlyn/src/embedded/shm_send\.c:' |
		sed 's/$/: a source is included by build_*.c only/'
	true
}

# Headers of folders include each other in one direction only; the top counts as one.
header_order() { # ROOT [EXCEPT]
	local root=$1 pairs
	pairs=$(local_includes "$root/" | grep -E '^[^:]*\.h:' | grep -vE "^$root/(${2:-})\.h:" |
		while IFS=: read -r file _ name; do
			[ -e "$REPO_DIR/${file%/*}/$name" ] && name=${file%/*}/$name || name=$root/$name
			[ ! -e "$REPO_DIR/$name" ] || [ "${file%/*}" = "${name%/*}" ] || echo "${file%/*} ${name%/*}"
		done | sort -u)
	tsort <<<"$pairs" 2>&1 >/dev/null | sed -n "s|^tsort: \(${root}[^:]*\)\$|\1: in a cycle of headers of folders|p"
}

# port.h is the core's door. hml.h has everything, and is for sources; trace.h is as one.
driver_folders() {
	header_order driver 'core/port|hml|trace'
	local_includes driver/ hml.h | grep -E '^[^:]*\.h:' | grep -v '^driver/trace\.h:' |
		sed 's/$/ is for sources/'
	local_includes driver/ | grep -v '^driver/core/' | while IFS=: read -r file line name; do
		[ -e "$REPO_DIR/${file%/*}/$name" ] || [ -e "$REPO_DIR/driver/$name" ] ||
			echo "$file:$line: no $name; headers are named from driver/"
	done
}

# What a public function begins with, where that is not the name of its file
declare -A DRIVER_NAMES=(
	[chardev]=fop [object/memory]='memory ring' [object/terminus]=term [object/mmap]='mmap'
	[engine/datapath]='pass term notify mem port_nq_wake' [engine/loan]='loan loans' [engine/stalled]=engine
	[fabric/fabric]='fabric port' [fabric/loop]='fabric loop' [netlink/family]=netlink [netlink/fill]='reader fill'
	[netlink/fabric]='netlink_fabric netlink_address' [netlink/peer]='netlink_peer'
	[main]='nic_default max' [object/nq]='nq nqs' [nic]='nic nics' [object/ticket]='ticket tickets' [object/tag]='tag tags'
	[user/user]='user users payer' [user/charge]=user [audit]='audit port_rejected' [watch/tell]=watch [watch/known]='known watch port_knew'
	[trace]='trace port_trace'
)

# A public function's prefix names its file
driver_names() {
	local file line name stem prefix
	while IFS=: read -r file line name; do
		file=${file#driver/}
		stem=${file%.c}
		for prefix in ${DRIVER_NAMES[$stem]:-${stem##*/}}; do
			[[ $name != "hml_$prefix" && $name != "hml_${prefix}_"* ]] || continue 2
		done
		echo "driver/$file:$line: $name(): the name says that it is of another file"
	done < <(c_files | grep -E '^driver/([a-z]+/)?[a-z_]*\.c$' | grep -v '^driver/core/' |
		run_in_tree grep -HnE '^[a-z][A-Za-z0-9_ *]*\bhml_[a-z0-9_]+\(' |
		grep -vE '^[^:]*:[0-9]*:(static|typedef|extern|return|DEFINE|module)\b' |
		sed -E 's/^([^:]*:[0-9]*):[^(]*\b(hml_[a-z0-9_]+)\(.*/\1:\2/')
}

# local_includes PREFIX [NAME]: FILE:LINE:NAME of each #include "NAME" below it
local_includes() {
	local name=${2:-[^\"]*} layer
	layer="($(IFS='|'; echo "${LAYERS[*]}"))/[a-z_]*\\.h"
	c_files | grep "^$1" | run_in_tree grep -HnoE \
		"^[[:blank:]]*#[[:blank:]]*include (\"$name\"|<$layer>)" |
		sed -E 's/^([^:]*:[0-9]+):[^"<]*["<]([^">]*)[">]/\1:\2/'
}

check_version_tests() {
	local files
	files=$(c_files | files_in '^driver/') || return 1
	files=$(grep -vx 'driver/compat/compat\.h' <<<"$files") || return 0
	quiet version_tests "$files"
}

version_tests() { # FILES
	run_in_tree grep -HnwE 'LINUX_VERSION_CODE|KERNEL_VERSION' <<<"$1" |
		sed 's/$/    <- only driver\/compat\/compat.h may test versions/' || true
}

# Home folders and mirrors belong to one machine. (The brackets keep this file from matching.)
check_private_paths() {
	local files
	files=$(tree_files ! -name '*.pcap' ! -name '*.png') || return 1
	quiet private_paths "$files"
}

private_paths() { # FILES
	run_in_tree grep -HnIE \
		-e '(^|[^A-Za-z0-9_.$}])/(hom[e]|Users)/[A-Za-z0-9_]+/' \
		-e '(^|[^A-Za-z0-9_.$}])/roo[t]/[A-Za-z0-9_.]' \
		-e '(deb|ftp[.a-z]*|security|snapshot|httpredir)[.]debian[.]org' \
		-e 'https?://[^ ]*[m]irror' <<<"$1" | sed 's/$/    <- path or host of one machine/' || true
}

check_shellcheck() {
	local files
	need_tool shellcheck "packages static" || return 1
	files=$(tree_files -name '*.sh' -o -path './.ci/run' | files_in .) || return 1
	quiet run_in_tree shellcheck -x -f gcc <<<"$files"
}

check_codespell() {
	need_tool codespell "packages static" || return 1
	local files
	files=$(tree_files ! -path "*/corpus/*" ! -name codespell.ignore | files_in .) || return 1
	quiet run_in_tree codespell -I "$STATIC_DIR/codespell.ignore" <<<"$files"
}

# ---- checks of the C code ----

# checkpatch_ignores FILE: the message types that checkpatch.conf takes out for that file
checkpatch_ignores() {
	local type pattern
	while read -r type pattern _; do
		# shellcheck disable=SC2053 # a pattern is meant
		[[ $type == \#* || -z $type || $1 != $pattern ]] || printf '%s\n' "$type"
	done <"$STATIC_DIR/checkpatch.conf" | sort -u | paste -sd,
}

# Files with the same exceptions are checked by one call
# What a file has passed it passes again, under the same name, options and checkpatch: the cache has a
# line for each. "make check" leaves the tools and the tests to "make check-static".
check_checkpatch() {
	local -A groups=()
	local folders='driver|uapi|libhamlyn|tools|selftests' passed=$CACHE/checkpatch.passed
	local files file ignores output options of
	need_helper checkpatch.pl || return 1
	need_tool perl "packages static" || return 1
	[ "${HAMLYN_MINUTES:-0}" = 0 ] || folders='driver|uapi|libhamlyn'
	files=$(c_files | files_in "^($folders)/") || return 1
	# It would ask git about commits that comments mention (GIT_DIR), and look for a kernel
	# tree's CamelCase names (root) and remember them in the current folder.
	mkdir -p "$WORK_DIR/no-kernel-tree/include"
	options="--no-tree --strict --terse --no-summary --show-types --max-line-length=$MAX_COLUMNS"
	of=$({ cat "$CACHE/kselftest/checkpatch.pl" && echo "$options"; } | sha256sum | cut -c-16)
	touch "$passed"
	while read -r file; do
		ignores=$(checkpatch_ignores "$file")
		printf '%s %s ' "$of" "${ignores:-none}"
		(cd "$REPO_DIR" && sha256sum "$file")
	done <<<"$files" | grep -Fvxf "$passed" >"$WORK_DIR/not-passed" || true
	while read -r _ ignores _ file; do
		groups[$ignores]+=$file$'\n'
	done <"$WORK_DIR/not-passed"
	# shellcheck disable=SC2016 # the $ are that shell's
	output=$(for ignores in "${!groups[@]}"; do
		printf '%s' "${groups[$ignores]}" | GIT_DIR=/nonexistent run_in_tree -n 8 -P 2 bash -c '
			perl $1 --root="$2/no-kernel-tree" --ignore "$3" --file "${@:4}" 2>&1 || exit 0
			for file in "${@:4}"; do
				grep " $file\$" "$2/not-passed"
			done >>"$0"' \
			"$passed" "$CACHE/kselftest/checkpatch.pl $options" "$WORK_DIR" "$ignores"
	done | sort -t: -k1,1 -k2,2n)
	rm -f "$REPO_DIR"/.checkpatch-camelcase.*
	quiet printf '%s' "$output"
}

check_kernel_doc() {
	local files
	need_helper kernel-doc || return 1
	files=$(tree_files -name '*.h' | files_in \
		'^(uapi|driver|libhamlyn/include|libhamlyn/(am|tempest|stache)/include)/') || return 1
	quiet run_in_tree perl "$CACHE/kselftest/kernel-doc" -none -Wall <<<"$files"
}

# What Documentation/abi.rst promises: errnos, time-outs, NULL; and that what grows is not padded
check_public_api() {
	need_tool clang "packages native" || return 1
	quiet "$STATIC_DIR/api.py" "$REPO_DIR/libhamlyn/include" "$REPO_DIR/selftests/low/abi.c" &&
		quiet padded
}

padded() {
	local headers warnings
	# Those that its inline functions hand over: of others the compiler does not know the size
	headers=$(cd "$REPO_DIR/libhamlyn/include" && printf '#include <%s>\n' hamlyn/*.h)
	warnings=$(clang -fsyntax-only -Wpadded -D_GNU_SOURCE -x c - -I"$REPO_DIR/uapi" \
		-I"$REPO_DIR/libhamlyn/include" 2>&1 <<<"$headers") ||
		{ echo "$warnings"; return; }
	grep -E "struct '?(h_\w+_(attr|counters|class)|h_datagram_stats)\>" <<<"$warnings" || :
	# A compiler that says nothing at all does not tell
	grep -q h_terminus <<<"$warnings" || echo "clang -Wpadded does not tell of struct h_terminus"
}

# What a library exports, its Debian package names with the version in which it came
# A program that was built against what is kept finds everything where it was
check_abi() {
	need_tool abidiff "packages static" || return 1
	(cd "$REPO_DIR" && "${MAKE:-make}" -s -j2 BUILD=build lib am tempest stache >/dev/null) || return 1
	quiet "$REPO_DIR/libhamlyn/abi/keep.sh" compare
}

check_package_symbols() { quiet package_symbols; }

package_symbols() {
	local library map file
	for library in "" -am -tempest -stache; do
		map=$REPO_DIR/libhamlyn/${library#-}/libhamlyn$library.map
		file=$REPO_DIR/tools/package/debian/libhamlyn${library}0.symbols
		diff <(grep -oE '^[[:space:]]+\w+;$' "$map" | tr -d '\t; ' | sort -u) \
			<(sed -n 's/^ \(.*\)@.* [0-9.]*~$/\1/p' "$file" | grep -v '^HAMLYN_' | sort) |
			sed -n "s|^< \(.*\)|${file##*/}: \1 is missing|p; s|^> \(.*\)|${file##*/}: \1 is not exported|p"
	done
}

# hamlyn.h has the version; what cannot ask it repeats it
check_versions() { quiet other_versions; }

other_versions() {
	local version pattern='(hamlyn |^version = "|__version__ = "|default=")[0-9]+\.[0-9]+\.[0-9]+'
	version=$(awk '/define H_VERSION_(MAJOR|MINOR|PATCH)/ { v = v d $3; d = "." } END { print v }' \
		"$REPO_DIR/libhamlyn/include/hamlyn.h")
	tree_files -name '*.[1-8]' -o -name pyproject.toml -o -path '*/hamlyn/__init__.py' \
		-o -path ./libhamlyn/man/gen.py | run_in_tree grep -HnE "$pattern" |
		grep -vF -e " $version" -e "\"$version\"" | sed "s/\$/    <- hamlyn.h has $version/" || true
	# Until 1.0 CMake takes no other MAJOR.MINOR.
	run_in_tree grep -HnE "find_package\(hamlyn |dependency\('libhamlyn'" \
		<<<$'libhamlyn/examples/CMakeLists.txt\nlibhamlyn/examples/meson.build' |
		grep -vE "[ =]${version%.*}\b" | sed "s/\$/    <- hamlyn.h has $version/" || true
	grep -m 1 '^## ' "$REPO_DIR/CHANGELOG.md" |
		grep -vE "^## ${version//./\\.} \((unreleased|[0-9]{4}-[0-9]{2}-[0-9]{2})\)\$" |
		sed "s/^/CHANGELOG.md: /; s/\$/    <- hamlyn.h has $version/" || true
}

check_netlink_generated() { "$STATIC_DIR/netlink-regen.sh"; }
# A program that "make check" runs in no guest would be missed by nobody
check_places() { (cd "$REPO_DIR" && selftests/check.sh places); }
check_conformance_table() { "$REPO_DIR/selftests/conformance.sh" --check; }
check_threat_catalogue() {
	"$REPO_DIR/selftests/threat.sh" --check && "$REPO_DIR/selftests/mutate.sh" --check
}

# A document that says where something is has to be right: paths, names of files, and in the table of
# a stranger's questions each answer's functions
check_documentation_paths() {
	local files
	files=$(tree_files -path './Documentation/*.rst' -o -path ./README.md | files_in .) || return 1
	quiet named_paths "$files" && quiet named_files && quiet answers
}

# shellcheck disable=SC2016 # those of the documents
named_paths() { # FILES
	local file line path
	while IFS=: read -r file line path; do
		[ -e "$REPO_DIR/$path" ] || echo "$file:$line: there is no $path"
	done < <(run_in_tree grep -HnoE \
		'`(driver|libhamlyn|selftests|tools|uapi|Documentation)/[A-Za-z0-9_./-]+`' <<<"$1" | tr -d '`' | grep -v ':tools/testing/')
}

# "rx.c" or "core/rx.c" may be in any folder
# shellcheck disable=SC2016 # those of the documents
named_files() {
	local line name tree
	tree=$(tree_files -name '*.[ch]')
	while IFS=: read -r line name; do
		grep -qE "(^|/)${name//./\\.}\$" <<<"$tree" || echo "Documentation/architecture.rst:$line: there is no $name"
	done < <(grep -noE '`[a-z0-9_/-]+\.[ch]`' "$REPO_DIR/Documentation/architecture.rst" | tr -d '`')
}

# The second column of the table, an answer a line: it names something that is there, and the
# functions after the name of a file are in that file
# shellcheck disable=SC2016 # those of the documents
answers() {
	local answer path name count=0
	while IFS= read -r answer; do
		count=$((count + 1))
		grep -qE '`(driver|selftests|libhamlyn)/' <<<"$answer" || echo "no path answers: $answer"
		while read -r path name; do
			grep -qwF -e "$name" "$REPO_DIR/$path" || echo "$path has no $name()"
		done < <(grep -oE '`[a-z_/]+/[a-z_]+\.[ch]``: ``[a-z_]+\(\)`' <<<"$answer" |
			sed -E 's/`([^`]*)``: ``([a-z_]+).*/\1 \2/')
	done < <(awk '
		/^Where is it/ { table = 1; next }
		!table { next }
		/^====/ { rules++; next }
		rules == 2 { exit }
		/^[^ ]/ { if (text) print text; text = "" }
		rules { text = text " " substr($0, 48) }
		END { print text }' "$REPO_DIR/Documentation/architecture.rst")
	[ "$count" = 10 ] || echo "there are $count answers, and ten questions"
}

# One screen, and each target that it names is there
check_build_help() {
	local help target missing=0
	help=$(cd "$REPO_DIR" && make -s help) || fail "make help: $help" || return 1
	[ "$(wc -l <<<"$help")" -le 24 ] || fail "make help has more than 24 lines" || return 1
	! grep -qE '.{101}' <<<"$help" || fail "make help is wider than 100 columns" || return 1
	while read -r _ target; do
		(cd "$REPO_DIR" && make -s -n BUILD="$WORK_DIR/help" "$target" >/dev/null 2>"$WORK_DIR/help") ||
			! grep "No rule to make target '$target'" "$WORK_DIR/help" || missing=1
	done < <(grep -oE '(make|\|) [a-z]+(-[a-z]+)*' <<<"$help")
	return $missing
}

# headers_of KERNEL: the folder that modules are built from
headers_of() {
	local root=$CACHE/kernel-$1/root
	local headers=("$root"/usr/src/linux-headers-*-amd64)
	[ -e "${headers[0]}/Makefile" ] ||
		fail "kernel $1 is not in the cache; run: selftests/setup.sh kernel $1" || return 1
	echo "${headers[0]}"
}

# without_warnings COMMAND...: fails on any warning or error, and shows what was said without the lines
# of progress
without_warnings() {
	local log status=0
	log=$("$@" 2>&1) || status=$?
	if [ "$status" != 0 ] || grep -qE '(warning|error): |WARNING|ERROR' <<<"$log"; then
		grep -v '^  [A-Z]' <<<"${log//"$WORK_DIR"\//}"
		return 1
	fi
}

# As README says it is put into a kernel: these four, and what the folder above them has. With all
# warnings, and sparse.
check_in_tree() {
	local stage=$WORK_DIR/in-tree headers
	need_tool sparse "packages static" || return 1
	headers=$(headers_of 6.12) || fail "$headers" || return 1
	rm -rf "$stage"
	mkdir -p "$stage/hamlyn"
	cp -r "$REPO_DIR"/{driver,uapi,Kconfig,Makefile} "$stage/hamlyn/"
	# shellcheck disable=SC2016 # the $ is make's
	echo 'obj-$(CONFIG_HAMLYN) += hamlyn/' >"$stage/Makefile"
	without_warnings make -C "$headers" M="$stage" CONFIG_HAMLYN=m HAMLYN_FSYNC_DOORBELL=n \
		W=1 C=2 CHECK=sparse CF=-D__CHECK_ENDIAN__ modules || return 1
	[ -e "$stage/hamlyn/driver/hamlyn.ko" ]
}

# As any module: build-module.sh hands over no variable of ours, and copies nothing but the folder and
# the header it shares. What is built for the guests is built on.
check_out_of_tree() {
	local out=$REPO_DIR/build/k6.1 root=$WORK_DIR/out-of-tree headers installed
	headers=$(headers_of 6.1) || fail "$headers" || return 1
	without_warnings "$VM_DIR/build-module.sh" 6.1 "$REPO_DIR" "$out" || return 1
	rm -rf "$root"
	# DEPMOD: there is no other module for it to look at
	make -C "$headers" M="$out/src/driver" INSTALL_MOD_PATH="$root" DEPMOD=true \
		modules_install || return 1
	installed=$(find "$root/lib/modules" -name 'hamlyn.ko*')
	[ -n "$installed" ] || fail "modules_install has installed no hamlyn.ko"
}

# In a kernel's own selftests, where each program is skipped for want of a device: it is quick
# to compile where that is all it does
check_kselftest() {
	local kernel=$WORK_DIR/kselftest said=$WORK_DIR/kselftest/said selftests here programs skipped
	[ -e "$CACHE/selftests/stamp" ] ||
		fail "a kernel's selftests are not in the cache; run: selftests/setup.sh kselftest" || return 1
	selftests=$kernel/tools/testing/selftests
	here=$selftests/hamlyn
	rm -rf "$kernel"
	mkdir -p "$kernel"
	cp -r "$CACHE/selftests/." "$kernel/"
	cp -r "$REPO_DIR/selftests/kernel" "$here"
	mkdir "$here/tree"
	(cd "$REPO_DIR" && cp -r --parents libhamlyn/{include,src} driver/core uapi selftests/lib "$here/tree") ||
		return 1
	HAMLYN_DEVICE=/nonexistent make -j2 -C "$selftests" TARGETS=hamlyn FORCE_TARGETS=1 \
		USERCFLAGS='-O0 -g0' run_tests >"$said" 2>&1 || fail "$(tail -n 20 "$said")" || return 1
	programs=$(find "$here/programs" -type f | wc -l)
	skipped=$(grep -c '^ok [0-9]* selftests: hamlyn: [a-z0-9_]* # SKIP$' "$said")
	[ "$programs" -gt 20 ] && [ "$skipped" = "$programs" ] ||
		fail "of $programs programs $skipped are skipped" "$(grep '^not ok' "$said")" || return 1
	# Where there is one, they are not
	HAMLYN_DEVICE=/dev/null make -C "$selftests" TARGETS=hamlyn TESTS=uapi_size run_tests >"$said" 2>&1
	grep -q '^not ok 1 selftests: hamlyn: uapi_size # exit=1' "$said" ||
		fail "what is no device is not refused:" "$(tail -n 20 "$said")"
}

# asked KCONFIG-LINES: what CONFIG_HAMLYN becomes where everything is wanted
asked() {
	local conf=("$CACHE"/kernel-6.1/root/usr/lib/linux-kbuild-6.1/scripts/kconfig/conf)
	local dir=$WORK_DIR/kconfig
	[ -x "${conf[0]}" ] || fail "kernel 6.1 is not in the cache; run: selftests/setup.sh kernel 6.1" || return 1
	rm -rf "$dir"
	mkdir -p "$dir"
	{
		printf 'mainmenu "test"\nconfig MODULES\n\tbool "modules"\n\tmodules\n'
		printf 'config %s\n\tdef_bool y\n' "$@"
		printf 'source "%s/Kconfig"\n' "$REPO_DIR"
	} >"$dir/Kconfig"
	(cd "$dir" && KCONFIG_CONFIG=$dir/config "${conf[0]}" --allmodconfig Kconfig >/dev/null) &&
		sed -n 's/^CONFIG_HAMLYN=//p' "$dir/config"
}

check_kconfig() {
	local got
	got=$(asked 64BIT MMU NET)
	[ "$got" = m ] || fail "with all it needs CONFIG_HAMLYN is \"$got\", not m" || return 1
	for without in '64BIT MMU' '64BIT NET' 'MMU NET' '64BIT MMU NET ARCH_HAS_CPU_CACHE_ALIASING' \
		'64BIT MMU NET SPARC'; do
		# shellcheck disable=SC2086 # several words
		got=$(asked $without)
		[ -z "$got" ] || fail "with only $without CONFIG_HAMLYN is $got" || return 1
	done
}

# build_log KERNEL WORK-FOLDER [make argument]...: from nothing, because an object that is built already
# gives no warning again
build_log() {
	local kernel=$1 out=$WORK_DIR/$2 status=0
	shift 2
	need_tool rsync "packages static" || return 1
	[ -e "$CACHE/kernel-$kernel/stamp" ] ||
		fail "kernel $kernel is not in the cache; run: selftests/setup.sh kernel $kernel" || return 1
	"$VM_DIR/build-module.sh" --may "$kernel" || status=$?
	[ "$status" = 0 ] ||
		left_out "mount namespaces are refused here, and the compiler of kernel $kernel needs one" || return
	rm -rf "$out"
	mkdir -p "$out"
	without_warnings "$VM_DIR/build-module.sh" "$kernel" "$REPO_DIR" "$out" "$@"
}

check_w1_6.1() { build_log 6.1 w1-6.1 W=1; }

# By a compiler of its own
check_w1_7.2() { build_log 7.2 w1-7.2 W=1; }

# ---- the report ----

# In a condition, where a command that fails ends nothing: the checks are written for that
run_check() { # NAME
	local status=0 begun=$SECONDS
	"check_${1//-/_}" >"$WORK_DIR/said/$1" 2>&1 || status=$?
	{ echo $((SECONDS - begun)) && times; } >"$WORK_DIR/said/$1.took"
	return "$status"
}

# "290 s, 410 of the processors": this was a shell of its own, with all that it has started
took() { # NAME
	tr 'ms\n' '   ' <"$WORK_DIR/said/$1.took" |
		awk '{ printf "%d s, %d of the processors", $1, ($2 + $4 + $6 + $8) * 60 + $3 + $5 + $7 + $9 }'
}

run_checks() { # NAME...
	local names=("$@") jobs=() number started=0 failed=0 skipped=0 status why
	mkdir -p "$WORK_DIR/said"
	printf 'TAP version 13\n1..%d\n' $#
	for ((number = 0; number < $#; number++)); do
		# Two at a time, told in their order
		while ((started < $# && started < number + 2)); do
			run_check "${names[started]}" &
			jobs[started]=$!
			started=$((started + 1))
		done
		status=0
		wait "${jobs[number]}" || status=$?
		if [ "$status" = 0 ]; then
			printf 'ok %d - %s\n' $((number + 1)) "${names[number]}"
		elif [ "$status" = 4 ] && why=$(sed -n '$p' "$WORK_DIR/said/${names[number]}") &&
			[[ $why == "SKIP "* ]]; then
			skipped=$((skipped + 1))
			printf 'ok %d - %s # %s\n' $((number + 1)) "${names[number]}" "$why"
		else
			failed=$((failed + 1))
			printf 'not ok %d - %s\n' $((number + 1)) "${names[number]}"
			head -n "$MAX_DIAGNOSTICS" "$WORK_DIR/said/${names[number]}" | sed 's/^/# /'
		fi
		printf '# %s: %s\n' "${names[number]}" "$(took "${names[number]}")"
	done
	printf '%d passed, %d failed' $(($# - failed - skipped)) "$failed"
	[ "$skipped" = 0 ] || printf ', %d skipped' "$skipped"
	echo
	[ "$failed" = 0 ]
}

main() {
	local name without=' ' names=()
	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help) usage && exit 0 ;;
		--list) printf '%s\n' "${CHECKS[@]}" "${SLOW_CHECKS[@]}" && exit 0 ;;
		--without)
			[ $# -gt 1 ] || die 2 "--without needs the name of a check; see --help"
			shift
			without+="$1 "
			;;
		-*) die 2 "option \"$1\" is unknown; allowed: --list, --without, --help" ;;
		esac
		# No pipe: who writes into one whose reader has found it fails
		[[ " ${CHECKS[*]} ${SLOW_CHECKS[*]} " == *" $1 "* ]] ||
			die 2 "check \"$1\" is unknown; allowed: ${CHECKS[*]} ${SLOW_CHECKS[*]}"
		[[ $without == *" $1 "* ]] || names+=("$1")
		shift
	done
	if [ ${#names[@]} = 0 ]; then
		for name in "${CHECKS[@]}"; do
			[[ $without == *" $name "* ]] || names+=("$name")
		done
	fi
	run_checks "${names[@]}"
}

main "$@"
