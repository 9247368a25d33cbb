# SPDX-License-Identifier: MIT
#
# Stache: libhamlyn-stache.a and libhamlyn-stache.so. Of Tempest it sees the public headers only.
STACHE_SRC := $(sort $(wildcard libhamlyn/stache/src/*.c))
STACHE_HDR := $(wildcard libhamlyn/stache/src/*.h libhamlyn/stache/include/*.h libhamlyn/stache/include/*/*.h libhamlyn/tempest/include/*.h \
	libhamlyn/tempest/include/tempest/*.h) $(TEMPEST_SEND)
STACHE_OBJ := $(STACHE_SRC:libhamlyn/stache/src/%.c=$(BUILD)/obj/stache/%.o)
STACHE_SO := $(BUILD)/libhamlyn-stache.so.$(VERSION)
STACHE_INC := -Ilibhamlyn/stache/include -Ilibhamlyn/tempest/include -I$(BUILD)/include

STACHE_EXAMPLES := $(patsubst libhamlyn/stache/examples/%.c,$(BUILD)/stache-examples/%,\
	$(wildcard libhamlyn/stache/examples/*.c))

stache: $(BUILD)/libhamlyn-stache.a $(BUILD)/libhamlyn-stache.so $(STACHE_EXAMPLES)

$(BUILD)/obj/stache/%.o: libhamlyn/stache/src/%.c $(STACHE_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Ilibhamlyn/stache/src $(STACHE_INC) $(CFLAGS_ALL) -fPIC \
		-fno-semantic-interposition -c $< -o $@

$(BUILD)/libhamlyn-stache.a: $(STACHE_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(STACHE_SO): $(STACHE_OBJ) $(BUILD)/libhamlyn-tempest.so libhamlyn/stache/libhamlyn-stache.map
	$(CC) -shared -Wl,-soname,libhamlyn-stache.so.$(SOVERSION) -Wl,--no-undefined -Wl,-z,nodelete \
		-Wl,--version-script=libhamlyn/stache/libhamlyn-stache.map $(LDFLAGS) \
		$(STACHE_OBJ) $(TEMPEST_SO) $(LIB_SO) -o $@ -lpthread

$(BUILD)/libhamlyn-stache.so: $(STACHE_SO)
	ln -sf $(<F) $(BUILD)/libhamlyn-stache.so.$(SOVERSION)
	ln -sf libhamlyn-stache.so.$(SOVERSION) $@

$(STACHE_EXAMPLES): $(BUILD)/stache-examples/%: libhamlyn/stache/examples/%.c $(STACHE_HDR) \
		$(wildcard libhamlyn/stache/examples/*.h) $(BUILD)/libhamlyn-stache.a \
		$(BUILD)/libhamlyn-tempest.a $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(STACHE_INC) $(CFLAGS_ALL) -fno-pie -static $< $(filter %.a,$^) \
		$(LDFLAGS) -lpthread -lm -o $@

install: $(if $(filter x86_64-%,$(MACHINE)),install-stache)
install-stache: stache
	install -d "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(INCLUDEDIR)/stache" \
		"$(DESTDIR)$(DATADIR)/hamlyn"
	install -m 644 $(BUILD)/libhamlyn-stache.a "$(DESTDIR)$(LIBDIR)/"
	install -m 755 $(STACHE_SO) "$(DESTDIR)$(LIBDIR)/"
	ln -sf libhamlyn-stache.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn-stache.so.$(SOVERSION)"
	ln -sf libhamlyn-stache.so.$(SOVERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn-stache.so"
	install -m 644 libhamlyn/stache/include/*.h "$(DESTDIR)$(INCLUDEDIR)/"
	install -m 644 libhamlyn/stache/include/stache/*.h "$(DESTDIR)$(INCLUDEDIR)/stache/"
	install -m 644 libhamlyn/stache/macros/c.m4.stache "$(DESTDIR)$(DATADIR)/hamlyn/"
	$(call fill_in,libhamlyn/stache/libhamlyn-stache.pc.in) > \
		"$(DESTDIR)$(LIBDIR)/pkgconfig/libhamlyn-stache.pc"

.PHONY: stache install-stache
