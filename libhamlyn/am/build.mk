# SPDX-License-Identifier: MIT
#
# Active Messages: libhamlyn-am.a and libhamlyn-am.so.
AM_SRC := $(sort $(wildcard libhamlyn/am/*.c))
AM_HDR := $(wildcard libhamlyn/am/*.h libhamlyn/am/include/*.h)
AM_OBJ := $(AM_SRC:libhamlyn/am/%.c=$(BUILD)/obj/am/%.o)
AM_SO := $(BUILD)/libhamlyn-am.so.$(VERSION)
AM_LIBS := $(BUILD)/libhamlyn-am.a $(BUILD)/libhamlyn.a
# PMIx is loaded when a program is started with it; only its header is needed here.
am_cppflags = $(CPPFLAGS_ALL) -Ilibhamlyn/am -Ilibhamlyn/am/include \
	$(shell $(PKG_CONFIG) --exists pmix && echo -DHAVE_PMIX && $(PKG_CONFIG) --cflags-only-I pmix)
# Handlers have the type that their kind of message says; see arrive.c.
am_cflags = $(CFLAGS_ALL) -Wno-cast-function-type

am: $(BUILD)/libhamlyn-am.a $(BUILD)/libhamlyn-am.so

$(BUILD)/obj/am/%.o: libhamlyn/am/%.c $(AM_HDR) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(am_cppflags) $(am_cflags) -fPIC -fno-semantic-interposition -c $< -o $@

$(BUILD)/libhamlyn-am.a: $(AM_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(AM_SO): $(AM_OBJ) $(LIB_SO) libhamlyn/am/libhamlyn-am.map
	$(CC) -shared -Wl,-soname,libhamlyn-am.so.$(SOVERSION) -Wl,--no-undefined \
		-Wl,--version-script=libhamlyn/am/libhamlyn-am.map $(LDFLAGS) \
		$(AM_OBJ) $(LIB_SO) -o $@ -ldl -lpthread

$(BUILD)/libhamlyn-am.so: $(AM_SO)
	ln -sf $(<F) $(BUILD)/libhamlyn-am.so.$(SOVERSION)
	ln -sf libhamlyn-am.so.$(SOVERSION) $@

install: install-am
install-am: am
	install -d "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(INCLUDEDIR)"
	install -m 644 $(BUILD)/libhamlyn-am.a "$(DESTDIR)$(LIBDIR)/"
	install -m 755 $(AM_SO) "$(DESTDIR)$(LIBDIR)/"
	ln -sf libhamlyn-am.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn-am.so.$(SOVERSION)"
	ln -sf libhamlyn-am.so.$(SOVERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn-am.so"
	install -m 644 libhamlyn/am/include/*.h "$(DESTDIR)$(INCLUDEDIR)/"
	$(call fill_in,libhamlyn/am/libhamlyn-am.pc.in) > "$(DESTDIR)$(LIBDIR)/pkgconfig/libhamlyn-am.pc"

.PHONY: am install-am
