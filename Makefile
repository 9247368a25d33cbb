# SPDX-License-Identifier: GPL-2.0-only
ifneq ($(KERNELRELEASE),)

# Inside a kernel tree.
obj-$(CONFIG_HAMLYN) += driver/

else

# hamlyn.h has the version; a soname stands for all that are compatible (Documentation/abi.rst).
VERSION := $(shell awk '/define H_VERSION_(MAJOR|MINOR|PATCH)/ { v = v d $$3; d = "." } \
	END { print v }' libhamlyn/include/hamlyn.h)
SOVERSION := 0

# Where products go, and where what was downloaded is kept.
BUILD ?= build
export HAMLYN_CACHE ?= $(CURDIR)/.cache
# Kernel that check-vm, vm-shell and the demo boot, and modules is for.
KERNEL ?= 6.1
# Kernels that "make check" covers, and those that "make check-all" does.
KERNELS ?= 6.1 7.2 debug
ALL_KERNELS ?= 6.1 6.12 7.2 6.1-rt debug kcsan
# Minutes in which "make check" is to end: a debug kernel that is not built in time is left out.
CHECK_MINUTES ?= 80

CC ?= gcc
PKG_CONFIG ?= pkg-config
CFLAGS ?= -O2 -g
WARN := -Wall -Werror=implicit-function-declaration -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes
CPPFLAGS_ALL := -D_GNU_SOURCE -Iuapi -Ilibhamlyn/include $(CPPFLAGS)
CFLAGS_ALL := -std=gnu11 $(WARN) $(CFLAGS)

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
SBINDIR ?= $(PREFIX)/sbin
BINDIR ?= $(PREFIX)/bin
DATADIR ?= $(PREFIX)/share
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions

# What is installed with its folders' names in it.
fill_in = sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|' $(1)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

# Tempest is made of instructions of x86-64, and says so where it is built for others.
MACHINE := $(shell $(CC) -dumpmachine)

#: make            library, examples and tools, into build/
all: lib am $(if $(HAVE_OFI),ofi) examples tools $(if $(filter x86_64-%,$(MACHINE)),tempest stache)

# Each folder says how it is built, and in lines with "#:" what it builds. The order is that of
# their variables.
FRAGMENTS := driver libhamlyn libhamlyn/am libhamlyn/ofi libhamlyn/tempest libhamlyn/stache libhamlyn/examples \
	libhamlyn/man libhamlyn/python tools/am tools/hamlyn-run tools/hamlyn-bridge tools/hamlyn-cat \
	tools/tempest-cc tools/hamlyn-perf tools/hamlynctl tools/udev tools/systemd tools/demo tools/package tools/site \
	selftests/unit selftests selftests/bindings selftests/am selftests/ofi selftests/tempest \
	selftests/tempest-cc selftests/stache selftests/fuzz \
	tools/bench tools/layout
include $(FRAGMENTS:%=%/build.mk)

#: make install    DESTDIR= PREFIX=/usr/local
install:

#: make clean      remove build/; make distclean: and the cache
clean:
	rm -rf $(BUILD)

distclean: clean
	rm -rf $(HAMLYN_CACHE)

help:
	@sed -n 's/^#: //p' Makefile $(FRAGMENTS:%=%/build.mk)
	@echo 'Variables: BUILD=$(BUILD) HAMLYN_CACHE=$(HAMLYN_CACHE) CC CFLAGS KERNELS'

.PHONY: all tools install clean distclean help

endif
