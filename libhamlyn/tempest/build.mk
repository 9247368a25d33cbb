# SPDX-License-Identifier: MIT
#
# Tempest: libhamlyn-tempest.a and libhamlyn-tempest.so. For x86-64 only, see abi.h.
TEMPEST_SRC := $(sort $(wildcard libhamlyn/tempest/src/*/*.c))
TEMPEST_SEND := $(BUILD)/include/tempest/send.h
TEMPEST_HDR := $(wildcard libhamlyn/tempest/src/*/*.h libhamlyn/tempest/include/*.h* libhamlyn/tempest/include/tempest/*.h) $(TEMPEST_SEND)
# Start-up, and the names of handlers, are those of Active Messages.
TEMPEST_AM := $(filter $(BUILD)/obj/am/boot%.o $(BUILD)/obj/am/address.o $(BUILD)/obj/am/error.o,$(AM_OBJ))
TEMPEST_OBJ := $(TEMPEST_SRC:libhamlyn/tempest/src/%.c=$(BUILD)/obj/tempest/%.o) $(TEMPEST_AM)
TEMPEST_SO := $(BUILD)/libhamlyn-tempest.so.$(VERSION)
TEMPEST_INC := -Ilibhamlyn/tempest/src -Ilibhamlyn/tempest/include -Ilibhamlyn/am \
	-Ilibhamlyn/am/include -I$(BUILD)/include

# System calls on the segment, for programs linked with wrap/wrap.opt.
TEMPEST_WRAP := $(BUILD)/libhamlyn-tempest-wrap.a
TEMPEST_WRAPPED = $(shell paste -s -d , libhamlyn/tempest/wrap/wrap.opt)

TEMPEST_EXAMPLES := $(patsubst libhamlyn/tempest/examples/%.c,$(BUILD)/tempest-examples/%,\
	$(wildcard libhamlyn/tempest/examples/*.c))

$(TEMPEST_EXAMPLES): $(BUILD)/tempest-examples/%: libhamlyn/tempest/examples/%.c $(TEMPEST_HDR) \
		$(wildcard libhamlyn/tempest/examples/*.h) \
		$(BUILD)/libhamlyn-tempest.a $(BUILD)/libhamlyn.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(TEMPEST_INC) $(CFLAGS_ALL) -fno-pie -static $< \
		$(BUILD)/libhamlyn-tempest.a $(BUILD)/libhamlyn.a $(LDFLAGS) -lpthread -o $@

tempest: $(BUILD)/libhamlyn-tempest.a $(BUILD)/libhamlyn-tempest.so $(TEMPEST_WRAP) \
	$(TEMPEST_EXAMPLES)

$(TEMPEST_SEND): libhamlyn/tempest/gen_send.sh
	@mkdir -p $(@D)
	$< > $@

$(BUILD)/obj/tempest/%.o: libhamlyn/tempest/src/%.c $(TEMPEST_HDR) $(LIB_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(TEMPEST_INC) $(CFLAGS_ALL) -fPIC -fno-semantic-interposition -c $< -o $@

# Cancelled threads return buffers: their end is an exception.
$(BUILD)/obj/tempest/wrap.o: libhamlyn/tempest/wrap/wrap.c $(TEMPEST_HDR)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(TEMPEST_INC) $(CFLAGS_ALL) -fexceptions -fPIC -c $< -o $@

$(TEMPEST_WRAP): $(BUILD)/obj/tempest/wrap.o
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libhamlyn-tempest.a: $(TEMPEST_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(TEMPEST_SO): $(TEMPEST_OBJ) $(LIB_SO) libhamlyn/tempest/libhamlyn-tempest.map
	$(CC) -shared -Wl,-soname,libhamlyn-tempest.so.$(SOVERSION) -Wl,--no-undefined -Wl,-z,nodelete \
		-Wl,--version-script=libhamlyn/tempest/libhamlyn-tempest.map $(LDFLAGS) \
		$(TEMPEST_OBJ) $(LIB_SO) -o $@ -ldl -lpthread

$(BUILD)/libhamlyn-tempest.so: $(TEMPEST_SO)
	ln -sf $(<F) $(BUILD)/libhamlyn-tempest.so.$(SOVERSION)
	ln -sf libhamlyn-tempest.so.$(SOVERSION) $@

install: $(if $(filter x86_64-%,$(MACHINE)),install-tempest)
install-tempest: tempest
	install -d "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(INCLUDEDIR)/tempest"
	install -m 644 $(BUILD)/libhamlyn-tempest.a $(TEMPEST_WRAP) "$(DESTDIR)$(LIBDIR)/"
	install -m 755 $(TEMPEST_SO) "$(DESTDIR)$(LIBDIR)/"
	ln -sf libhamlyn-tempest.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn-tempest.so.$(SOVERSION)"
	ln -sf libhamlyn-tempest.so.$(SOVERSION) "$(DESTDIR)$(LIBDIR)/libhamlyn-tempest.so"
	install -m 644 libhamlyn/tempest/include/*.h* "$(DESTDIR)$(INCLUDEDIR)/"
	install -m 644 libhamlyn/tempest/include/tempest/*.h $(TEMPEST_SEND) \
		"$(DESTDIR)$(INCLUDEDIR)/tempest/"
	$(call fill_in,libhamlyn/tempest/libhamlyn-tempest.pc.in) | sed 's|@WRAP@|$(TEMPEST_WRAPPED)|' > \
		"$(DESTDIR)$(LIBDIR)/pkgconfig/libhamlyn-tempest.pc"

.PHONY: tempest install-tempest
