# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# The analysers of check.sh: programs that follow what the code does, and so find things
# that are none. Each says what it found as FILE:LINE: [id] text; analysers.conf says
# which of it is none, and why. Sourced by check.sh.

USER_FLAGS=(
	-std=gnu11 -D_GNU_SOURCE '-DHAMLYN_VERSION="0"' -Iuapi -Ilibhamlyn/include -Ilibhamlyn/src -Ilibhamlyn/src/embedded
	-iquotedriver/core -Ilibhamlyn/am -Ilibhamlyn/am/include -Itools/am/lib -Itools
	-Ilibhamlyn/tempest/src -Ilibhamlyn/tempest/include -Ilibhamlyn/stache/src -Ilibhamlyn/stache/include -Ibuild/include
)

# explained TOOL: of the findings on standard input, those that analysers.conf does not
# explain. Fails when there is one, or when a line of analysers.conf explains none.
explained() {
	awk -v tool="$1" '
		function ere(pattern) {
			gsub(/[.+^$(){}|]/, "[&]", pattern)
			gsub(/[*]/, ".*", pattern)
			return "^" pattern "$"
		}
		NR == FNR {
			if ($1 == tool) {
				id[++n] = $2
				file[n] = ere($3)
				line[n] = $0
			}
			next
		}
		{
			known = 0
			where = $0
			sub(/:.*/, "", where)
			for (i = 1; i <= n; i++)
				if (index($0, "[" id[i] "]") && where ~ file[i])
					known = used[i] = 1
			if (!known) {
				print
				bad = 1
			}
		}
		END {
			for (i = 1; i <= n; i++)
				if (!used[i]) {
					print "analysers.conf explains nothing with: " line[i]
					bad = 1
				}
			exit bad
		}' "$STATIC_DIR/analysers.conf" -
}

# Warnings of compilers in the form that explained() reads
warnings() {
	sed -nE "s#^($REPO_DIR/)?([^: ]+:[0-9]+):[0-9]+: (warning|error): (.*) \[-W([^]]*)\]\$#\2: [\5] \4#p
		s#^($REPO_DIR/)?([^: ]+:[0-9]+):[0-9]+: warning: (.*) \[([a-z.A-Z]+)\]\$#\2: [\4] \3#p
		s#^($REPO_DIR/)?([^: ]+:[0-9]+):[0-9]+: (fatal )?error: (.*[^]])\$#\2: [error] \4#p" | sort -u
}

check_cppcheck() {
	local files flags=("${USER_FLAGS[@]:1}")
	need_tool cppcheck "packages static" || return 1
	files=$(c_files | files_in '^(driver/core|libhamlyn/((src|ofi/src)/[a-z]+|am|tempest/src/[a-z]+|tempest/wrap|stache/src)|tools/[a-z-]+(/lib)?|tools/hamlyn(-perf|ctl)/[a-z]+)/[^/]*\.c$') || return 1
	# The answer to a file that it cannot read is a finding as well
	run_in_tree nice -n 5 cppcheck -j 2 --enable=warning,performance,portability --std=c11 --quiet \
		--template='{file}:{line}: [{id}] {message}' -D__linux__=1 -D__x86_64__=1 -D__GNUC__=12 \
		-D__SIZEOF_POINTER__=8 "${flags[@]/#-iquote/-I}" <<<"$files" 2>&1 | explained cppcheck
}

# Library, tools and examples; everything anew, because what is built already warns no more
check_gcc_analyzer() {
	local log=$WORK_DIR/gcc-analyzer.log
	rm -rf "$WORK_DIR/gcc-analyzer"
	nice -n 5 make -C "$REPO_DIR" --no-print-directory -s -j2 "BUILD=$WORK_DIR/gcc-analyzer" \
		CFLAGS='-O2 -fanalyzer -fdiagnostics-path-format=none' lib am examples >"$log" 2>&1 ||
		{ tail -n 20 "$log" && fail "the build failed"; } || return 1
	warnings <"$log" | explained gcc
}

# gcc-12 has no -fanalyzer that knows the kernel: locks and references are sparse's and coccinelle's
check_gcc_analyzer_module() {
	local log
	log=$(build_log 6.1 analyzer-6.1 KCFLAGS='-fanalyzer -fdiagnostics-path-format=none' 2>&1) || true
	[ -e "$WORK_DIR/analyzer-6.1/hamlyn.ko" ] || fail "$log" || return 1
	warnings <<<"$log" | explained gcc-module
}

# One file a call: version 14 takes what it learnt of va_list into the next file
check_clang_analyzer() {
	local files
	need_tool clang "packages native" || return 1
	files=$(c_files | files_in '^libhamlyn/(src|am)/.*\.c$') || return 1
	run_in_tree -n 1 -P 2 nice -n 5 clang --analyze --analyzer-output text "${USER_FLAGS[@]}" \
		-Xclang -analyzer-checker=core,deadcode,security.FloatLoopCounter,unix,nullability \
		<<<"$files" 2>&1 | warnings | explained clang
}

check_coccinelle() {
	local files scripts
	need_tool spatch "packages static" || return 1
	[ -e "$CACHE/coccinelle/stamp" ] ||
		fail "the kernel's scripts are not in the cache; run: selftests/setup.sh kselftest" || return 1
	files=$(c_files | files_in '^driver/.*\.c$' | paste -sd' ') || return 1
	scripts=$(grep -rl '^virtual report' "$CACHE/coccinelle/scripts" | sort | files_in cocci) || return 1
	# shellcheck disable=SC2016 # the $ are the inner shell's
	xargs -P 2 -n 1 sh -c '
		cd "$1" && nice -n 5 spatch -D report --very-quiet --no-show-diff --no-includes \
			--cocci-file "$3" $2 2>&1 | grep -E "^(driver/|.*(error|rror:))" |
			sed -E "s#^([^:]*:[0-9]+):[0-9]+(-[0-9]+)?: *#\1: [$(basename "$3" .cocci)] #"
		exit 0' sh "$REPO_DIR" "$files" <<<"$scripts" | sort | explained coccinelle
}

# ---- 32 bits are refused, in so many words ----

# refusal FILE FLAG...: the only error that a compiler has to say of it
refusal() {
	local file=$1
	shift
	(cd "$REPO_DIR" && gcc -fsyntax-only -Wfatal-errors "$@" "$file" 2>&1) |
		sed -nE 's/.*error: (#error )?//p'
}

check_refuses_32_bit() {
	local said
	said=$(refusal libhamlyn/include/hamlyn.h -x c -m32)
	[[ $said == *"64-bit"* ]] || fail "library: gcc -m32 says \"$said\"" || return 1
	said=$(refusal driver/hml.h -x c -UCONFIG_64BIT)
	[[ $said == *"64-bit"* ]] || fail "module: without CONFIG_64BIT gcc says \"$said\"" || return 1
	grep -qE '^[[:blank:]]depends on 64BIT\b' "$REPO_DIR/Kconfig" ||
		fail "Kconfig: HAMLYN does not depend on 64BIT"
}

check_refuses_aliasing_caches() {
	local said
	said=$(refusal driver/hml.h -x c -DCONFIG_64BIT -DCONFIG_ARCH_HAS_CPU_CACHE_ALIASING)
	[[ $said == *alias* ]] || fail "module: where caches alias gcc says \"$said\"" || return 1
	said=$(refusal driver/hml.h -x c -DCONFIG_64BIT -DCONFIG_MIPS)
	[[ $said == *alias* ]] || fail "module: with CONFIG_MIPS gcc says \"$said\"" || return 1
	grep -qE '^[[:blank:]]depends on !ARCH_HAS_CPU_CACHE_ALIASING$' "$REPO_DIR/Kconfig" ||
		fail "Kconfig: HAMLYN does not exclude caches that alias"
}
