#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# In a system of a release, as root: upgrade.sh puts it there, with packages in /srv/old and /srv/new.
set -uo pipefail
cd /tmp || exit 2

limit=$((60 * ${HAMLYN_TEST_SCALE:-1}))
# shellcheck source-path=SCRIPTDIR source=result.sh
. /srv/result.sh

installs() { # PACKAGE...
	# A mirror of sid may be older than its signature says it may get
	apt-get -q -o Acquire::Check-Valid-Until=false update &&
		apt-get -q -y --no-install-recommends install "$@"
}

# Every package is there, and of that version
are_of() { # FOLDER
	local deb
	for deb in /srv/"$1"/*.deb; do
		[ "$(dpkg-query -W -f '${db:Status-Abbrev}${Version}' "$(dpkg-deb -f "$deb" Package)")" = \
			"ii $(dpkg-deb -f "$deb" Version)" ] || { echo "$deb"; return 1; }
	done
}

user() { # COMMAND...
	setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp HAMLYN_DEVICE=shm:upgrade,size=64M "$@"
}

programs() {
	cat >server.c <<-'EOT'
		#include <hamlyn/server.h>
		static int echo(struct h_channel *client, const struct h_message *message, void *arg)
		{
			(void)arg;
			return h_channel_send(client, message->data, message->length, H_NOWAIT);
		}
		int main(void)
		{
			struct h_server *server;
			return h_server_create("/tmp/c.sock", echo, 0, 0, &server) || h_server_run(server, H_FOREVER);
		}
	EOT
	cat >client.c <<-'EOT'
		#include <hamlyn/channel.h>
		#include <stdio.h>
		int main(void)
		{
			struct h_channel *channel;
			struct h_message reply;
			if (h_channel_dial("/tmp/c.sock", 0, &channel, H_FOREVER) ||
			    h_channel_request(channel, "hello", 6, &reply, H_FOREVER))
				return 1;
			puts(reply.data);
			h_channel_release(channel, &reply);
			return h_channel_close(channel, 1000000000) < 0;
		}
	EOT
	cat >server.py <<-'EOT'
		import hamlyn
		with hamlyn.serve("/tmp/py.sock", lambda client, message: message.data) as server:
		    server.run()
	EOT
	cat >client.py <<-'EOT'
		import hamlyn
		with hamlyn.dial("/tmp/py.sock") as channel, channel.request(b"hello", timeout=60) as reply:
		    print(bytes(reply).decode())
	EOT
	gcc server.c -o server -lhamlyn && gcc client.c -o client.old -lhamlyn
}

# A server in C, one in Python, and a listener
serve() {
	local end=$((SECONDS + limit)) path
	user ./server & servers=($!)
	user python3 server.py & servers+=($!)
	user hamlyn-cat -l /tmp/held >/tmp/heard & holder=$!
	for path in c.sock py.sock held; do
		until [ -S $path ]; do
			[ $SECONDS -lt $end ] || { echo "nobody makes $path"; return 1; }
			sleep 0.1
		done
	done
}

answers() { # COMMAND...
	[ "$(user timeout "$limit" "$@")" = hello ]
}

new_program() {
	gcc client.c -o client.new -lhamlyn && answers ./client.new
}

hears() {
	echo upgraded | user timeout "$limit" hamlyn-cat /tmp/held && wait "$holder" && [ "$(cat heard)" = upgraded ]
}

purges() {
	# shellcheck disable=SC2046 # one word each
	apt-get -q -y purge $(dpkg-query -W -f '${Package}\n' '*hamlyn*')
}

go_on() { # by a program that has the library in memory
	kill -0 "${servers[@]}"
}

nothing_left() {
	! find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /srv -o -path /tmp -o -path /var/log -o \
		-path /var/lib/apt -o -path /var/cache \) -prune -o -name '*hamlyn*' -print | grep .
}

check "the earlier version is installed" installs gcc libc6-dev python3 /srv/old/*.deb
check "programs against it" programs
check "servers of it" serve
check "a program and Python of it speak with them" eval 'answers ./client.old && answers python3 client.py'
check "upgraded while in use" installs /srv/new/*.deb
check "all of them" are_of new
check "a program of before, with the later library" answers ./client.old
check "a later program, with the earlier server" new_program
check "later Python, with the earlier server" answers python3 client.py
check "the later tool, with the earlier listener" hears
check "purged while in use" purges
check "whoever used it goes on" go_on
kill "${servers[@]}"
check "nothing is left" nothing_left
results
