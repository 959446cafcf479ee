/* heddle top: which rows are shown, and lines that fit a terminal, whatever is in them. */
#include "harness/unit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cli/top/top.h"

/* ---- a view ---------------------------------------------------------------------------------- */

struct scene {
    struct hed_live_view view;
    struct hed_live_row rows[200];
    struct hed_top_choice choice;
    struct hed_top_list list;
    struct hed_top_page page;
    struct hed_top_state state;
};

static struct hed_live_row *
add_row(struct scene *s, const char *user, const char *name, double busy)
{
    struct hed_live_row *r = &s->rows[s->view.row_count];

    *r = (struct hed_live_row){.pid = (int32_t)(100 + s->view.row_count),
                               .busy = busy,
                               .wait = -1,
                               .rate = 10,
                               .key = s->view.row_count + 1,
                               .state = HED_LIVE_RUNNING,
                               .memory_known = true,
                               .memory = 1 << 20};
    snprintf(r->user, sizeof r->user, "%s", user);
    snprintf(r->name, sizeof r->name, "%s", name);
    snprintf(r->command, sizeof r->command, "/usr/bin/%s --all", name);
    s->view.row_count++;
    return r;
}

static int
make_scene(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    if (!s)
        return -1;
    s->view.rows = s->rows;
    s->view.gpu_count = 1;
    s->view.gpus[0] = (struct hed_live_gpu){.policy = "priority", .busy = 0.5, .programs = 3};
    memcpy(s->view.gpus[0].uuid, "d57e5f867f744237af9211a1b6b65de9", 33);
    add_row(s, "alice", "python3", 0.25);
    add_row(s, "bob", "server", 0.75);
    add_row(s, "alice", "idle", -1)->state = HED_LIVE_IDLE;
    s->state = (struct hed_top_state){
        .view = &s->view, .list = &s->list, .choice = &s->choice, .columns = 80, .lines = 24};
    *state = s;
    return 0;
}

static int
free_scene(void **state)
{
    struct scene *s = *state;

    hed_top_list_free(&s->list);
    hed_top_page_free(&s->page);
    free(s);
    return 0;
}

static void
draw(struct scene *s)
{
    assert_int_equal(hed_top_arrange(&s->view, &s->choice, &s->list), 0);
    hed_top_draw(&s->state, &s->page);
    assert_int_equal(s->page.err, 0);
    if (s->state.lines)
        assert_true(s->page.count <= s->state.lines);
    for (size_t i = 0; i < s->page.count; i++) {
        assert_true(strlen(s->page.lines[i].text) <= s->state.columns);
        for (const char *at = s->page.lines[i].text; *at; at++)
            assert_true(*at >= ' ' && *at <= '~');
    }
}

/* The number of the first line with a text; -1 if there is none. */
static int
line_with(const struct scene *s, const char *text)
{
    for (size_t i = 0; i < s->page.count; i++)
        if (strstr(s->page.lines[i].text, text))
            return (int)i;
    return -1;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void
the_busiest_comes_first(void **state)
{
    struct scene *s = *state;

    draw(s);
    assert_true(line_with(s, "server") < line_with(s, "python3"));
    assert_true(line_with(s, "python3") < line_with(s, "idle"));
    assert_true(line_with(s, "75.0") == line_with(s, "server"));
    s->choice.reverse = true;
    draw(s);
    assert_true(line_with(s, "server") > line_with(s, "python3"));
}

/* Every size, the smallest and some that are larger than what is there. */
static void
a_page_fits_every_terminal(void **state)
{
    struct scene *s = *state;

    s->view.server_count = 2;
    snprintf(s->view.servers[1].why, sizeof s->view.servers[1].why, "%s", "it does not answer");
    while (s->view.row_count < 150)
        add_row(s, "carol", "a-program-with-a-rather-long-name", 0.01);
    for (size_t columns = 1; columns <= 200; columns += columns < 30 ? 1 : 17) {
        for (size_t lines = 1; lines <= 60; lines += lines < 12 ? 1 : 7) {
            for (int tree = 0; tree < 2; tree++) {
                s->choice.tree = tree;
                s->state.columns = columns;
                s->state.lines = lines;
                s->state.cursor = 149;
                s->state.note = lines % 2 ? "a note that is longer than a small terminal" : NULL;
                draw(s);
            }
        }
    }
}

static void
a_small_terminal_has_rows(void **state)
{
    struct scene *s = *state;

    s->state.columns = 20;
    s->state.lines = 5;
    draw(s);
    assert_int_equal(s->page.count, 5);
    assert_int_equal(s->page.lines[1].kind, HED_TOP_HEADING);
    assert_true(line_with(s, "75.0") == 2 && line_with(s, "running") == 2);
    s->state.note = "paused";
    draw(s);
    assert_string_equal(s->page.lines[0].text, "paused");
}

static void
the_cursor_is_on_the_screen(void **state)
{
    struct scene *s = *state;
    size_t chosen = 0;

    while (s->view.row_count < 100)
        add_row(s, "carol", "x", 0.01);
    for (size_t cursor = 0; cursor < 100; cursor += 33) {
        s->state.cursor = cursor;
        draw(s);
        chosen = 0;
        for (size_t i = 0; i < s->page.count; i++)
            chosen += s->page.lines[i].chosen;
        assert_int_equal(chosen, 1);
    }
    s->view.row_count = 1; /* the others have ended */
    draw(s);
    assert_int_equal(s->state.cursor, 0);
}

static void
no_programs_are_said_so(void **state)
{
    struct scene *s = *state;

    s->view.row_count = s->view.gpu_count = 0;
    draw(s);
    assert_true(line_with(s, "no program (heddle run --sched") > 0);
}

static void
escape_sequences_stay_inside(void **state)
{
    struct scene *s = *state;

    add_row(s, "\x1b[2J",
            "\x1b]0;title\x07\x9b"
            "31m\xc3\xa9",
            0.9);
    snprintf(s->view.gpus[0].user, sizeof s->view.gpus[0].user, "\x1b[31m");
    s->view.server_count = 1;
    snprintf(s->view.servers[0].gpu, sizeof s->view.servers[0].gpu, "\x1b[31m");
    snprintf(s->view.problem.text, sizeof s->view.problem.text, "\x1b[31m");
    draw(s); /* it looks at every letter */
    s->choice.command = s->choice.tree = true;
    draw(s);
}

static void
what_is_not_known_is_no_number(void **state)
{
    struct scene *s = *state;
    struct hed_live_row *r = add_row(s, "dave", "unknown", -1);

    r->memory_known = false;
    r->rate = -1;
    s->choice.reverse = true;
    s->state.columns = 200;
    draw(s);

    const int at = line_with(s, "unknown");

    assert_true(at > 0);
    assert_null(strstr(s->page.lines[at].text, "0.0"));
    assert_non_null(strstr(s->page.lines[at].text, "-/-"));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void
a_filter_looks_at_everything(void **state)
{
    static const struct {
        const char *filter;
        size_t count;
    } rows[] = {{"ALICE", 2}, {"serv", 1}, {"--all", 3}, {"101", 1}, {"10", 0}, {"idle", 1}};
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(s->choice.filter, sizeof s->choice.filter, "%s", rows[i].filter);
        draw(s);
        assert_int_equal(s->list.count, rows[i].count);
    }
    assert_int_equal(line_with(s, "no program passes"), -1);
    snprintf(s->choice.filter, sizeof s->choice.filter, "%s", "nothing like that");
    draw(s);
    assert_true(line_with(s, "no program passes the filter") > 0);
}

static void
a_tree_has_sums(void **state)
{
    struct scene *s = *state;

    s->choice.tree = true;
    draw(s);
    assert_int_equal(s->list.count, 5);
    assert_true(s->list.items[0].sum && s->list.items[0].count == 2);
    assert_true(s->list.items[0].busy == 0.25);
    assert_int_equal(s->list.items[0].memory, 2 << 20);
    assert_true(s->list.items[3].sum && s->list.items[3].count == 1);
    assert_true(line_with(s, "alice: 2") < line_with(s, "bob: 1"));
}

static void
every_key_sorts(void **state)
{
    struct scene *s = *state;
    enum hed_top_sort sort;

    for (int i = 0; i < HED_TOP_SORTS; i++) {
        s->choice.sort = (enum hed_top_sort)i;
        draw(s);
        assert_true(hed_top_sort_find(hed_top_sort_name(s->choice.sort), &sort) && (int)sort == i);
        if (i == HED_TOP_BY_PID)
            assert_int_equal(s->list.items[0].row, 0);
        if (i == HED_TOP_BY_PROGRAM)
            assert_int_equal(s->list.items[0].row, 2);
        if (i == HED_TOP_BY_STATE)
            assert_int_equal(s->list.items[2].row, 2);
    }
    assert_false(hed_top_sort_find("nonsense", &sort));
}

static void
numbers_fit_their_columns(void **state)
{
    char out[HED_TOP_CELL];

    for (uint64_t n = 1; n; n <<= 1) {
        hed_top_size(n - 1, out);
        assert_true(strlen(out) <= 6);
        hed_top_duration(n, out);
        assert_true(n > 99999 * HED_NS_PER_S || strlen(out) <= 8);
        hed_top_count((double)n, out);
        assert_true(strlen(out) <= 7);
    }
    hed_top_size(1536, out);
    assert_string_equal(out, "1.5K");
    hed_top_percent(1.7, out);
    assert_string_equal(out, "100.0");
    hed_top_duration(1900000, out);
    assert_string_equal(out, "1.9ms");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_busiest_comes_first, make_scene, free_scene),
    cmocka_unit_test_setup_teardown(a_page_fits_every_terminal, make_scene, free_scene),
    cmocka_unit_test_setup_teardown(a_small_terminal_has_rows, make_scene, free_scene),
    cmocka_unit_test_setup_teardown(the_cursor_is_on_the_screen, make_scene, free_scene),
    cmocka_unit_test_setup_teardown(no_programs_are_said_so, make_scene, free_scene),
    cmocka_unit_test_setup_teardown(escape_sequences_stay_inside, make_scene, free_scene),
    cmocka_unit_test_setup_teardown(what_is_not_known_is_no_number, make_scene, free_scene),
    cmocka_unit_test_setup_teardown(a_filter_looks_at_everything, make_scene, free_scene),
    cmocka_unit_test_setup_teardown(a_tree_has_sums, make_scene, free_scene),
    cmocka_unit_test_setup_teardown(every_key_sorts, make_scene, free_scene),
    cmocka_unit_test(numbers_fit_their_columns),
};

HED_UNIT_MAIN(tests)
