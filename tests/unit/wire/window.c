/* Tests of windows: what two sides agree on when there is one, when there is none and when one of
 * them says something impossible; doorbells; and how a guest finds its device. */
#include "channel_make.h"

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "remote/wire/channel/doorbell.h"
#include "remote/wire/transport.h"

struct place { /* as channel/window.c sends it */
    uint64_t offset, size;
    uint8_t id[16];
};

static int gave; /* pieces that were given back */

static uint64_t
take_nothing(void *arg, uint64_t bytes)
{
    return 0;
}

static void
count_given(void *arg, uint64_t offset, uint64_t bytes)
{
    gave++;
}

static struct hed_window
make_window(uint64_t (*take)(void *, uint64_t))
{
    struct hed_window w = {.fd = memfd_create("window", MFD_CLOEXEC),
                           .size = WINDOW_BYTES,
                           .take = take,
                           .give = count_given};

    assert_true(w.fd >= 0);
    assert_int_equal(ftruncate(w.fd, WINDOW_BYTES), 0);
    return w;
}

/* Makes both halves of a channel. A window of NULL: this side has none. */
static struct pair
make_with(const struct hed_window *client, const struct hed_window *worker)
{
    struct hed_conn *conns[2];
    struct hed_why why = {""};
    struct pair p = {NULL, NULL};
    void *result = NULL;
    pthread_t thread;

    make_conns(OVER_UNIX, conns);
    hed_conn_set_window(conns[0], client);
    hed_conn_set_window(conns[1], worker);

    struct half half = {.conn = conns[0]};

    assert_int_equal(pthread_create(&thread, NULL, make_client_half, &half), 0);
    assert_int_equal(hed_channel_accept(conns[1], &hed_channel_window, &p.worker, &why), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_null(result);
    p.client = half.channel;
    return p;
}

static void
check_messages(struct pair *p)
{
    struct hed_msg *m;

    assert_int_equal(send_one(p->client, 1, 64, 0, true), 0);
    assert_int_equal(hed_channel_next(p->worker, PATIENCE_MS, &m), 0);
    assert_true(is_right(m, 1, 64));
    assert_int_equal(send_one(p->worker, 2, 64, 0, true), 0);
    assert_int_equal(hed_channel_next(p->client, PATIENCE_MS, &m), 0);
    assert_true(is_right(m, 2, 64));
}

static void
without_a_window_bytes_go_over_the_connection(void **state)
{
    struct hed_window full = make_window(take_nothing);
    const struct hed_window *const workers[] = {NULL, &full};

    for (size_t i = 0; i < 2; i++) {
        struct pair p = make_with(NULL, workers[i]);
        void *slots;

        assert_false(hed_channel_shares(p.client));
        assert_false(hed_channel_shares(p.worker));
        assert_null(hed_channel_window_of(p.client, &slots));
        check_messages(&p);
        free_pair(&p);
    }
    (void)close(full.fd);
}

/* This machine has no such device, so the client cannot map what the worker offers. */
static void
client_that_cannot_map_goes_on_without(void **state)
{
    struct hed_window w = make_window(take_first_piece);

    gave = 0;
    w.id[0] = 1; /* no device has this */

    struct pair p = make_with(NULL, &w);

    assert_false(hed_channel_shares(p.client));
    assert_false(hed_channel_shares(p.worker));
    assert_int_equal(gave, 1);
    check_messages(&p);
    free_pair(&p);
    (void)close(w.fd);
}

/* Whoever knows the number of a session can begin a channel of it. One that goes no further, or is
 * refused, must not use up the window. */
static void
channels_that_come_to_nothing_give_their_piece_back(void **state)
{
    struct hed_window w = make_window(take_first_piece);
    struct hed_conn *conns[2];
    struct hed_channel *ch = NULL;
    struct hed_why why = {""};

    gave = 0;
    make_conns(OVER_UNIX, conns);
    hed_conn_set_window(conns[1], &w);
    hed_conn_close(conns[0]);
    assert_int_equal(hed_channel_accept(conns[1], &hed_channel_window, &ch, &why), HED_EIO);
    assert_int_equal(gave, 1);

    struct pair p = make_with(&w, &w);

    assert_true(hed_channel_shares(p.worker));
    assert_int_equal(gave, 1);
    free_pair(&p);
    assert_int_equal(gave, 2); /* by the worker's side alone */
    (void)close(w.fd);
}

static void
old_words_of_a_piece_are_cleared(void **state)
{
    struct hed_window w = make_window(take_first_piece);
    void *p = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, w.fd, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    memset(p, 0xa5, WINDOW_BYTES);

    struct pair pair = make_with(&w, &w);
    void *slots = NULL;

    assert_true(hed_channel_shares(pair.client));
    assert_non_null(hed_channel_window_of(pair.client, &slots));
    for (size_t i = 0; i < HED_CHANNEL_SLOTS; i++)
        assert_int_equal(((const uint8_t *)slots)[i], 0);
    check_messages(&pair);
    free_pair(&pair);
    munmap(p, WINDOW_BYTES);
    (void)close(w.fd);
}

/* A host that lies to its guest: the program gets an error, not a wild mapping. */
static void
impossible_places_are_refused(void **state)
{
    static const struct place places[] = {
        {.offset = 1, .size = HED_SHM_SIZE + HED_CHANNEL_SLOTS},
        {.offset = HED_WINDOW_UNIT, .size = 1},
        {.offset = WINDOW_BYTES, .size = HED_SHM_SIZE + HED_CHANNEL_SLOTS},
        {.offset = WINDOW_BYTES - HED_WINDOW_UNIT, .size = HED_SHM_SIZE + HED_CHANNEL_SLOTS},
        {.offset = UINT64_MAX - HED_WINDOW_UNIT + 1, .size = HED_SHM_SIZE + HED_CHANNEL_SLOTS},
    };
    struct hed_window w = make_window(take_first_piece);

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct hed_conn *conns[2];
        struct hed_channel *ch = NULL;
        struct hed_why why = {""};

        make_conns(OVER_UNIX, conns);
        hed_conn_set_window(conns[0], &w);
        assert_int_equal(hed_conn_write(conns[1], &places[i], sizeof places[i]), 0);
        assert_int_equal(hed_channel_create(conns[0], &hed_channel_window, &ch, &why), HED_EFORMAT);
        hed_conn_close(conns[1]);
    }
    (void)close(w.fd);
}

/* ---- doorbells ------------------------------------------------------------------------------- */

/* A guest that sends something else than rings must not keep its worker busy: the wait ends. */
static void
noise_on_the_connection_ends_a_wait(void **state)
{
    static const char noise[] = {HED_DOORBELL_BYTE, HED_DOORBELL_BYTE, 'x'};
    struct pair p = make_pair(OVER_WINDOW);
    struct hed_msg *m;

    sleep_until_woken(p.worker);
    assert_int_equal(hed_conn_write(hed_channel_conn(p.client), noise, sizeof noise), 0);
    assert_int_equal(hed_channel_next(p.worker, -1, &m), HED_EIO);
    free_pair(&p);
}

static void
rings_without_a_message_wake_nobody_for_good(void **state)
{
    struct pair p = make_pair(OVER_WINDOW);
    struct hed_doorbell *doorbell = &hed_shm_of(p.client)->doorbell;
    struct hed_msg *m;

    for (int i = 0; i < 1000; i++)
        hed_doorbell_ring(doorbell);
    assert_int_equal(hed_channel_next(p.worker, 50, &m), HED_ETIME);
    check_messages(&p);
    free_pair(&p);
}

struct sleeper {
    struct hed_doorbell *doorbell;
    _Atomic uint32_t go, done;
};

static void *
sleep_at_doorbell(void *arg)
{
    struct sleeper *s = arg;

    while (!atomic_load(&s->go))
        (void)hed_doorbell_wait(s->doorbell, INT64_C(100) * 1000000000);
    atomic_fetch_add(&s->done, 1);
    return NULL;
}

/* One thread listens to the connection; the others hear of it. */
static void
all_sleepers_of_a_side_are_woken(void **state)
{
    struct hed_conn *conns[2];
    struct hed_doorbell here, there;
    pthread_t threads[4];
    struct sleeper s = {.doorbell = &here};

    make_conns(OVER_UNIX, conns);
    hed_doorbell_init(&here, conns[0]);
    hed_doorbell_init(&there, conns[1]);
    alarm(PATIENCE_S);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sleep_at_doorbell, &s), 0);
    atomic_store(&s.go, 1);
    /* A thread may have looked just before, and go to sleep only now. */
    while (atomic_load(&s.done) < 4) {
        hed_doorbell_ring(&there);
        (void)sched_yield();
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    hed_conn_close(conns[0]);
    hed_conn_close(conns[1]);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void
write_file(const char *root, const char *slot, const char *name, const void *p, size_t n)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/%s", root, slot, name);

    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), n);
    if (strncmp(name, "resource", 8) == 0)
        assert_int_equal(ftruncate(fd, WINDOW_BYTES), 0);
    close(fd);
}

static void
add_device(const char *root, const char *slot, const char *device,
           const struct hed_window_header *h)
{
    static const char *const folders[] = {"", "/sys", "/sys/bus", "/sys/bus/pci",
                                          "/sys/bus/pci/devices"};
    char path[512];

    for (size_t i = 1; i < sizeof folders / sizeof folders[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", root, folders[i]);
        (void)mkdir(path, 0700);
    }
    (void)snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s", root, slot);
    assert_int_equal(mkdir(path, 0700), 0);
    write_file(root, slot, "vendor", "0x1af4\n", 7);
    write_file(root, slot, "device", device, strlen(device));
    if (h)
        write_file(root, slot, "resource2_wc", h, sizeof *h);
}

static int
remove_path(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    return remove(path);
}

static void
guest_finds_its_window_among_devices(void **state)
{
    char root[] = "/tmp/heddle-window-XXXXXX";
    struct hed_window_header ours = {.version = 1, .size = WINDOW_BYTES, .name = "alpha"};
    const struct hed_window_header foreign = {.magic = "SPICE!!!"};
    struct hed_window_device devices[8];
    struct hed_window w;
    struct hed_why why = {""};

    memcpy(ours.magic, HED_WINDOW_MAGIC, sizeof ours.magic);
    memset(ours.id, 7, sizeof ours.id);
    assert_non_null(mkdtemp(root));
    assert_int_equal(hed_window_devices(root, devices, 8), 0);
    assert_int_equal(hed_window_check_name(root, "beta", &why), 0); /* that cannot be told */
    assert_int_equal(hed_window_open(root, ours.id, &w, &why), HED_ENOTFOUND);
    add_device(root, "0000:00:01.0", "0x1000\n", &ours); /* a network card */
    add_device(root, "0000:00:02.0", "0x1110\n", &foreign);
    add_device(root, "0000:00:03.0", "0x1110\n", NULL); /* without a BAR */
    add_device(root, "0000:00:04.0", "0x1110\n", &ours);
    assert_int_equal(hed_window_devices(root, devices, 8), 3);
    assert_int_equal(hed_window_devices(root, devices, 1), 3);
    assert_int_equal(hed_window_open(root, ours.id, &w, &why), 0);
    assert_int_equal(w.size, WINDOW_BYTES);
    close(w.fd);
    assert_int_equal(hed_window_check_name(root, "alpha", &why), 0);
    assert_int_equal(hed_window_check_name(root, "beta", &why), HED_ENOTFOUND);
    assert_string_equal(why.text, "this guest is 'alpha' for its host: use vm:alpha, or vm:");
    assert_int_not_equal(hed_window_open(root, (const uint8_t[16]){1}, &w, &why), 0);
    assert_non_null(strstr(why.text, "none of the ivshmem devices"));
    assert_int_equal(nftw(root, remove_path, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void
gateway_is_the_host_of_a_user_network(void **state)
{
    static const struct {
        const char *routes, *address; /* NULL: there is none */
    } rows[] = {
        {"Iface\tDestination\tGateway \tFlags\neth0\t0002000A\t00000000\t0001\n"
         "eth0\t00000000\t0202000A\t0003\n",
         "tcp://10.0.2.2:7717"},
        {"Iface\tDestination\tGateway\neth0\t0002000A\t0102000A\t0001\n", NULL},
        {"Iface\tDestination\tGateway\neth0\t00000000\t00000000\t0001\n", NULL},
        {"nonsense", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int fd = memfd_create("routes", 0);
        struct hed_address a;
        struct hed_why why = {""};
        char path[64], text[HED_ADDRESS_TEXT];

        assert_int_equal(hed_address_parse("vm:", &a, &why), 0);
        assert_int_equal(write(fd, rows[i].routes, strlen(rows[i].routes)), strlen(rows[i].routes));
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        assert_int_equal(hed_vm_gateway(path, &a), rows[i].address ? 0 : HED_ENOTFOUND);
        hed_address_text(&a, text, sizeof text);
        assert_string_equal(text, rows[i].address ? rows[i].address : "vm:auto");
        close(fd);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_a_window_bytes_go_over_the_connection),
    cmocka_unit_test(client_that_cannot_map_goes_on_without),
    cmocka_unit_test(channels_that_come_to_nothing_give_their_piece_back),
    cmocka_unit_test(old_words_of_a_piece_are_cleared),
    cmocka_unit_test(impossible_places_are_refused),
    cmocka_unit_test(noise_on_the_connection_ends_a_wait),
    cmocka_unit_test(rings_without_a_message_wake_nobody_for_good),
    cmocka_unit_test(all_sleepers_of_a_side_are_woken),
    cmocka_unit_test(guest_finds_its_window_among_devices),
    cmocka_unit_test(gateway_is_the_host_of_a_user_network),
};

HED_UNIT_MAIN(tests)
