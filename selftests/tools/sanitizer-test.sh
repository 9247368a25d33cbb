#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Programs of users under the sanitizers: with the library as it is installed and its
# suppressions for threads, and with a library that is built for the memory sanitizer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
	echo "Usage: selftests/tools/sanitizer-test.sh [BUILD-FOLDER]"
}

case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
esac

BUILD=${1:-build}
SUPPRESSIONS=$PWD/libhamlyn/tsan.suppressions
LIMIT=$((60 * ${HAMLYN_TEST_SCALE:-1}))
passed=0
failed=0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		head -n 40 "$work/log" | sed 's/^/# /'
		failed=$((failed + 1))
	fi
}

cat >"$work/exchange.c" <<'EOT'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hamlyn/channel.h>

#define MESSAGES 2000
#define PATIENCE 20000000000

struct end {
	struct h_manager *manager;
	struct h_channel *channel;
};

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	exit(1);
}

/* What is sent was written a moment ago, and is written again at once. */
static void *send_all(void *arg)
{
	struct end *end = arg;
	unsigned char data[3000];
	int i;

	for (i = 0; i < MESSAGES; i++) {
		memset(data, i, sizeof(data));
		must(h_channel_send(end->channel, data, 1 + (size_t)i % sizeof(data), PATIENCE),
		     "h_channel_send");
	}
	return NULL;
}

int main(void)
{
	struct end a, b;
	struct h_dev *dev;
	struct h_message m;
	pthread_t thread;
	unsigned long sum = 0;
	int i;

	must(h_open(NULL, &dev), "h_open");
	must(h_manager_create(dev, NULL, &a.manager), "h_manager_create");
	must(h_manager_create(dev, NULL, &b.manager), "h_manager_create");
	must(h_channel_pair(a.manager, b.manager, NULL, &a.channel, &b.channel), "h_channel_pair");
	if (pthread_create(&thread, NULL, send_all, &a))
		return 1;
	for (i = 0; i < MESSAGES; i++) {
		must(h_channel_receive(b.channel, &m, PATIENCE), "h_channel_receive");
		if (((unsigned char *)m.data)[m.length - 1] != (unsigned char)i)
			return 3;
		sum += m.length;
		h_channel_release(b.channel, &m);
	}
	pthread_join(thread, NULL);
	printf("%lu bytes\n", sum);
	h_close(dev);
	return 0;
}
EOT

build() { # COMPILER SANITIZER LIBRARY OUTPUT
	"$1" -O1 -g "-fsanitize=$2" -Iuapi -Ilibhamlyn/include "$work/exchange.c" "$3" -lpthread \
		-o "$work/$4"
}

exchange() { # PROGRAM
	HAMLYN_DEVICE=shm:sanitizer-$$ LD_LIBRARY_PATH=$BUILD timeout -k 5 "$LIMIT" "$work/$1"
}

threads() { # PROGRAM: with the suppressions
	TSAN_OPTIONS=exitcode=66:suppressions=$SUPPRESSIONS exchange "$1"
}

# Else the one above would show nothing
threads_alone() { # PROGRAM
	local status=0
	TSAN_OPTIONS=exitcode=66 exchange "$1" || status=$?
	[ "$status" = 66 ]
}

memory_library() {
	make --no-print-directory -s "-j$(nproc)" "BUILD=$work/msan" CC=clang \
		CFLAGS='-O1 -g -fsanitize=memory -fno-omit-frame-pointer' "$work/msan/libhamlyn.a"
}

memory() { # PROGRAM
	MSAN_OPTIONS=exitcode=66 exchange "$1"
}

for compiler in gcc clang; do
	check "a program of threads builds with $compiler" \
		build "$compiler" thread "$BUILD/libhamlyn.so" "threads-$compiler"
	check "it runs without a report" threads "threads-$compiler"
	check "it would not without the suppressions" threads_alone "threads-$compiler"
done
check "the library builds for the memory sanitizer" memory_library
check "a program builds with it" build clang memory "$work/msan/libhamlyn.a" memory
check "it runs without a report" memory memory

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
