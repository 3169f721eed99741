/* SPDX-License-Identifier: MIT */
/* Packets, held against libipt's packet decoder: on streams of its encoder, and on bytes at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/flow/pt_packet.h"
#include "tests/unit/pt_stream.h"

static struct pt_stream stream;

/* What libipt says of the packet at the head: its size, or a negative error. */
static int ipt_read(const uint8_t *bytes, size_t size, struct pt_packet *packet)
{
    struct pt_config config;
    struct pt_packet_decoder *decoder;
    int n;

    pt_config_init(&config);
    config.begin = (uint8_t *)(uintptr_t)bytes;
    config.end = (uint8_t *)(uintptr_t)bytes + size;
    decoder = pt_pkt_alloc_decoder(&config);
    assert_non_null(decoder);
    n = pt_pkt_sync_set(decoder, 0);
    if (n >= 0)
        n = pt_pkt_next(decoder, packet, sizeof(*packet));
    pt_pkt_free_decoder(decoder);
    return n;
}

static void read_what_the_encoder_writes(void **state)
{
    struct etch_pt_reader reader = {0};
    struct etch_pt_packet packet;

    (void)state;
    stream.n = 0;
    put_tnt(&stream, "TNNTT");
    assert_int_equal(etch_pt_packet_read(&reader, stream.bytes, stream.bytes + stream.n, &packet), 1);
    assert_int_equal(packet.count, 5);
    assert_int_equal(packet.value, 0x13);
    stream.n = 0;
    put_tnt(&stream, "TNNTTNNNNNNNT");
    assert_int_equal(etch_pt_packet_read(&reader, stream.bytes, stream.bytes + stream.n, &packet), 8);
    assert_int_equal(packet.count, 13);
    assert_int_equal(packet.value, 0x1301);
}

static void extend_addresses(void **state)
{
    static const struct {
        enum pt_ip_compression how;
        uint64_t given, expected;
    } cases[] = {
        {pt_ipc_full, 0x1122334455667788, 0x1122334455667788}, {pt_ipc_update_16, 0xabcd, 0x112233445566abcd},
        {pt_ipc_update_32, 0x99999999, 0x1122334499999999},    {pt_ipc_update_48, 0x123456789abc, 0x1122123456789abc},
        {pt_ipc_sext_48, 0xfedcba987654, 0xfffffedcba987654},  {pt_ipc_suppressed, 0, 0xfffffedcba987654}};
    struct etch_pt_reader reader = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct pt_packet tip = {.type = ppt_tip};
        struct etch_pt_packet packet;

        tip.payload.ip.ipc = cases[i].how;
        tip.payload.ip.ip = cases[i].given;
        stream.n = 0;
        put_packet(&stream, &tip);
        assert_int_equal(etch_pt_packet_read(&reader, stream.bytes, stream.bytes + stream.n, &packet), stream.n);
        assert_int_equal(reader.last_ip, cases[i].expected);
        assert_int_equal(packet.has_ip, cases[i].how != pt_ipc_suppressed);
    }
}

/* libipt 2.0.5 does not know these; everything else it must read as we do. */
static bool is_newer(const uint8_t *p)
{
    return p[0] == 0x02 && (p[1] == 0x13 || p[1] == 0x53 || p[1] == 0x63 || p[1] == 0x33 || p[1] == 0xb3);
}

static void agree_with_libipt(void **state)
{
    uint32_t seed = 1, both = 0;

    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        uint8_t bytes[16];
        struct etch_pt_reader reader = {0};
        struct etch_pt_packet packet;
        struct pt_packet theirs;
        int ours, n;

        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)((seed = seed * 1103515245u + 12345u) >> 16);
        if (round & 1)
            bytes[0] = 0x02; /* the rare ones, as often as the others */
        if (is_newer(bytes))
            continue;
        ours = etch_pt_packet_read(&reader, bytes, bytes + sizeof(bytes), &packet);
        n = ipt_read(bytes, sizeof(bytes), &theirs);
        if (n < 0) /* it also refuses reserved bits, which we pass over */
            continue;
        assert_int_equal(ours, n);
        both++;
    }
    assert_true(both > 60000);
}

static void never_read_behind_the_end(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 256; first++)
        for (unsigned second = 0; second < 256; second++)
            for (size_t size = 1; size <= 16; size++) {
                uint8_t *bytes = calloc(1, size); /* for the address sanitizer */
                struct etch_pt_reader reader = {0};
                struct etch_pt_packet packet;
                int n;

                bytes[0] = (uint8_t)first;
                if (size > 1)
                    bytes[1] = (uint8_t)second;
                n = etch_pt_packet_read(&reader, bytes, bytes + size, &packet);
                assert_true(n <= (int)size);
                free(bytes);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_what_the_encoder_writes),
        cmocka_unit_test(extend_addresses),
        cmocka_unit_test(agree_with_libipt),
        cmocka_unit_test(never_read_behind_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
