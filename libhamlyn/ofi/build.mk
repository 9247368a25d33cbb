# SPDX-License-Identifier: MIT
#
# The libfabric provider: libhamlyn-fi.so, in a folder of its own, for libfabric takes all it
# finds in one. Without libfabric's headers there is none, and all else is built.
OFI_SRC := $(sort $(wildcard libhamlyn/ofi/src/*/*.c))
OFI_HDR := $(wildcard libhamlyn/ofi/src/*/*.h)
OFI_OBJ := $(OFI_SRC:libhamlyn/ofi/src/%.c=$(BUILD)/obj/ofi/%.o)
OFI_SO := $(BUILD)/libfabric/libhamlyn-fi.so
HAVE_OFI := $(shell $(PKG_CONFIG) --exists libfabric && echo yes)
ofi_cflags = $(CPPFLAGS_ALL) -Ilibhamlyn/ofi/src $(CFLAGS_ALL) $(shell $(PKG_CONFIG) --cflags libfabric) \
	-fPIC -fvisibility=hidden

#: make ofi        the libfabric provider, into build/libfabric (needs libfabric-dev)
ofi: $(OFI_SO)

$(BUILD)/obj/ofi/%.o: libhamlyn/ofi/src/%.c $(OFI_HDR) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(ofi_cflags) -c $< -o $@

# It may be loaded by programs that have libhamlyn.so already: that one, then. Sanitizers have
# their own symbols undefined in what is shared, and want the other library.
OFI_LIB ?= $(BUILD)/libhamlyn.so
OFI_LINK ?= -Wl,--no-undefined
# Where that is; not needed where libraries are looked for anyway.
OFI_RPATH ?= -Wl,-rpath,'$$ORIGIN/..'

$(OFI_SO): $(OFI_OBJ) $(OFI_LIB) libhamlyn/ofi/libhamlyn-fi.map
	@mkdir -p $(@D)
	$(CC) -shared $(OFI_LINK) -Wl,--version-script=libhamlyn/ofi/libhamlyn-fi.map \
		$(OFI_RPATH) $(CFLAGS) $(LDFLAGS) $(OFI_OBJ) $(OFI_LIB) \
		$(shell $(PKG_CONFIG) --libs libfabric) -lpthread -o $@

ifeq ($(HAVE_OFI),yes)
install: install-ofi
endif
install-ofi: ofi
	install -d "$(DESTDIR)$(LIBDIR)/libfabric"
	install -m 755 $(OFI_SO) "$(DESTDIR)$(LIBDIR)/libfabric/"

.PHONY: ofi install-ofi
