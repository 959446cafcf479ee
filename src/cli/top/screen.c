/* heddle top: the terminal.
 *
 *     poll: a key | a signal | time to look ---> act ---> draw
 *
 * Signals arrive at a descriptor and end the loop, so the terminal is always left as it was found.
 * The size is asked for whenever something is drawn.
 */
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/top/top.h"

#define ESCAPE 27
#define NOTE_NS (4 * HED_NS_PER_S) /* how long what happened is shown */

static const char *const help[] = {
    "arrows, j k, PgUp PgDn, Home End   choose a program",
    "p     pause it, or let it go on",
    "+ -   raise or lower its priority",
    "s S   sort by the next key, by the one before",
    "r     turn the order round",
    "/     filter; Enter keeps it, Esc takes it away",
    "t     tree: the programs of a user and group together",
    "c     command lines or names",
    "space look now",
    "q     quit",
    "",
    "BUSY% the GPU works for it; WAIT% a call of it is held.",
    "p99   99 % of its waits were shorter. -: not known.",
    "any key: back",
};

struct screen {
    struct hed_live_look *live;
    struct hed_top_choice *choice;
    const struct hed_live_view *view;
    struct hed_top_list list;
    struct hed_top_page page;
    size_t cursor, first;
    uint64_t chosen; /* the key of the program at the cursor, which may move; 0: none */
    char note[256];
    uint64_t note_until;
    bool editing; /* the filter */
    bool helping;
    bool stop;
    int err;
};

bool
hed_top_has_screen(void)
{
    return true;
}

__attribute__((format(printf, 2, 3))) static void
say_note(struct screen *s, const char *fmt, ...)
{
    char text[sizeof s->note];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)hed_sched_plain(text, s->note, sizeof s->note);
    s->note_until = hed_now_ns() + NOTE_NS;
}

/* ---- what is shown --------------------------------------------------------------------------- */

static const struct hed_live_row *
chosen_row(const struct screen *s)
{
    if (s->cursor >= s->list.count || s->list.items[s->cursor].sum)
        return NULL;
    return &s->view->rows[s->list.items[s->cursor].row];
}

/* The cursor stays at its program, wherever that is now. If it is gone, at its line. */
static void
arrange_again(struct screen *s)
{
    s->err = hed_top_arrange(s->view, s->choice, &s->list);
    for (size_t i = 0; s->chosen && i < s->list.count; i++)
        if (!s->list.items[i].sum && s->view->rows[s->list.items[i].row].key == s->chosen)
            s->cursor = i;
    if (s->cursor >= s->list.count)
        s->cursor = s->list.count ? s->list.count - 1 : 0;
}

static void
look_again(struct screen *s)
{
    s->err = hed_live_sample(s->live, &s->view);
    if (!s->err)
        arrange_again(s);
}

static void
move_cursor(struct screen *s, long by)
{
    const long last = (long)s->list.count - 1;
    long to = (long)s->cursor + by;

    to = to > last ? last : to;
    s->cursor = to > 0 ? (size_t)to : 0;
    s->chosen = chosen_row(s) ? chosen_row(s)->key : 0;
}

static void
follow_size(void)
{
    struct winsize w;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0 &&
        (w.ws_row != LINES || w.ws_col != COLS))
        (void)resizeterm(w.ws_row, w.ws_col);
}

static attr_t
attribute_of(const struct hed_top_line *l)
{
    if (l->chosen || l->kind == HED_TOP_HEADING)
        return A_REVERSE;
    if (l->kind == HED_TOP_TITLE || l->kind == HED_TOP_SUM)
        return A_BOLD;
    return l->quiet ? A_DIM : A_NORMAL;
}

static void
draw_line(int y, const struct hed_top_line *l)
{
    const attr_t attribute = attribute_of(l);

    (void)attrset((int)attribute);
    (void)mvaddnstr(y, 0, l->text, COLS);
    /* A bar goes to the end of the line. */
    if (attribute == A_REVERSE && (int)strlen(l->text) < COLS)
        (void)mvhline(y, (int)strlen(l->text), ' ' | A_REVERSE, COLS - (int)strlen(l->text));
}

static void
draw_help(void)
{
    (void)attrset(A_NORMAL);
    for (int y = 0; y < LINES && y < (int)(sizeof help / sizeof *help); y++)
        (void)mvaddnstr(y, 0, help[y], COLS);
}

static const char *
note_of(struct screen *s)
{
    if (s->editing)
        (void)snprintf(s->note, sizeof s->note, "filter: %s_", s->choice->filter);
    return s->editing || hed_now_ns() < s->note_until ? s->note : NULL;
}

static void
draw_screen(struct screen *s)
{
    follow_size();
    (void)erase();
    if (s->helping) {
        draw_help();
    } else {
        struct hed_top_state state = {.view = s->view,
                                      .list = &s->list,
                                      .choice = s->choice,
                                      .columns = (size_t)COLS,
                                      .lines = (size_t)LINES,
                                      .cursor = s->cursor,
                                      .first = s->first,
                                      .note = note_of(s)};

        hed_top_draw(&state, &s->page);
        s->first = state.first;
        s->err = s->err ? s->err : s->page.err;
        for (size_t i = 0; i < s->page.count && i < (size_t)LINES; i++)
            draw_line((int)i, &s->page.lines[i]);
    }
    (void)refresh();
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void
change_chosen(struct screen *s, const struct hed_sched_change *change, const char *did)
{
    const struct hed_live_row *r = chosen_row(s);
    struct hed_why why = {""};

    if (!r)
        say_note(s, "choose a program first");
    else if (hed_live_change(s->live, r, change, &why) != 0)
        say_note(s, "%s", why.text);
    else
        say_note(s, "%s %s (%d)", did, r->name, r->pid);
}

static void
toggle_pause(struct screen *s)
{
    const struct hed_live_row *r = chosen_row(s);
    const bool paused = r && r->program && r->program->paused;
    const struct hed_sched_change change = {.paused = !paused, .release = -1};

    change_chosen(s, &change, paused ? "resumed" : "paused");
}

static void
change_priority(struct screen *s, int by)
{
    const struct hed_live_row *r = chosen_row(s);
    const int now = r ? (int)r->priority + by : 0;
    const uint32_t wanted = (uint32_t)(now < HED_PRIORITY_LOW    ? HED_PRIORITY_LOW
                                       : now > HED_PRIORITY_HIGH ? HED_PRIORITY_HIGH
                                                                 : now);
    const struct hed_sched_change change = {
        .settings = {.given = HED_SCHED_GIVEN_PRIORITY, .priority = wanted},
        .paused = -1,
        .release = -1,
    };
    char did[64];

    (void)snprintf(did, sizeof did, "priority %s:", hed_sched_priority_name(wanted));
    change_chosen(s, &change, did);
}

static void
edit_filter(struct screen *s, int key)
{
    char *text = s->choice->filter;
    const size_t n = strlen(text);

    if (key == '\n' || key == '\r' || key == KEY_ENTER) {
        s->editing = false;
    } else if (key == ESCAPE) {
        text[0] = '\0';
        s->editing = false;
    } else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
        text[n ? n - 1 : 0] = '\0';
    } else if (key >= ' ' && key < 127 && n + 1 < HED_TOP_FILTER) {
        text[n] = (char)key;
        text[n + 1] = '\0';
    }
    if (!s->editing)
        s->note_until = 0;
    arrange_again(s);
}

static void
sort_by_next(struct screen *s, unsigned by)
{
    s->choice->sort = (enum hed_top_sort)((s->choice->sort + by) % HED_TOP_SORTS);
    say_note(s, "sorted by %s", hed_top_sort_name(s->choice->sort));
    arrange_again(s);
}

static bool
move_by_key(struct screen *s, int key)
{
    const long page = LINES > 4 ? LINES - 4 : 1;

    switch (key) {
    case KEY_UP:
    case 'k':
        move_cursor(s, -1);
        return true;
    case KEY_DOWN:
    case 'j':
        move_cursor(s, 1);
        return true;
    case KEY_PPAGE:
        move_cursor(s, -page);
        return true;
    case KEY_NPAGE:
        move_cursor(s, page);
        return true;
    case KEY_HOME:
        move_cursor(s, -(long)s->list.count);
        return true;
    case KEY_END:
        move_cursor(s, (long)s->list.count);
        return true;
    default:
        return false;
    }
}

static void
change_view(struct screen *s, int key)
{
    switch (key) {
    case 'q':
        s->stop = true;
        break;
    case 'h':
    case '?':
        s->helping = true;
        break;
    case 's':
        sort_by_next(s, 1);
        break;
    case 'S':
        sort_by_next(s, HED_TOP_SORTS - 1);
        break;
    case 'r':
        s->choice->reverse = !s->choice->reverse;
        arrange_again(s);
        break;
    case 't':
        s->choice->tree = !s->choice->tree;
        arrange_again(s);
        break;
    case 'c':
        s->choice->command = !s->choice->command;
        break;
    case '/':
        s->editing = true;
        break;
    case ' ':
        look_again(s);
        break;
    default:
        break;
    }
}

static void
press_key(struct screen *s, int key)
{
    if (key == KEY_RESIZE)
        return;
    if (s->editing)
        edit_filter(s, key);
    else if (s->helping)
        s->helping = false;
    else if (key == 'p')
        toggle_pause(s);
    else if (key == '+' || key == '=')
        change_priority(s, 1);
    else if (key == '-')
        change_priority(s, -1);
    else if (!move_by_key(s, key))
        change_view(s, key);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Takes signals from the descriptor. All but a new size mean the end. */
static void
take_signals(struct screen *s, int signals)
{
    struct signalfd_siginfo info;

    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGWINCH)
            s->stop = true;
}

static int
milliseconds_until(uint64_t when)
{
    const uint64_t now = hed_now_ns();

    return when > now ? (int)((when - now) / HED_NS_PER_MS) + 1 : 0;
}

/* Waits for a key or a signal until it is time to look, and acts. */
static void
wait_and_act(struct screen *s, int signals, uint64_t next)
{
    struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    int key;

    if (poll(p, 2, milliseconds_until(next)) < 0 && errno != EINTR)
        s->err = hed_err_from_errno(errno);
    take_signals(s, signals);
    while (!s->stop && (key = getch()) != ERR)
        press_key(s, key);
    /* The terminal is gone. */
    if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
        s->stop = true;
}

static void
run_screen(struct screen *s, int signals, uint64_t every)
{
    uint64_t next = hed_now_ns() + every;

    look_again(s);
    while (!s->stop && !s->err) {
        draw_screen(s);
        wait_and_act(s, signals, next);
        if (!s->stop && hed_now_ns() >= next) {
            look_again(s);
            next = hed_now_ns() + every;
        }
    }
}

static int
open_signals(void)
{
    static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        (void)sigaddset(&set, wanted[i]);
    /* Before there are threads: they take none of them. */
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void
show_screen(struct screen *s, int signals, uint64_t every)
{
    (void)cbreak();
    (void)noecho();
    (void)curs_set(0);
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)set_escdelay(25);
    run_screen(s, signals, every);
    (void)endwin();
}

int
hed_top_screen(const struct hed_live_how *how, struct hed_top_choice *c)
{
    struct screen s = {.choice = c};
    struct hed_why why = {""};
    const int signals = open_signals();
    SCREEN *terminal = NULL;
    int err = signals < 0 ? hed_err_from_errno(errno) : hed_live_open(how, &s.live, &why);

    if (err) {
        hed_cli_say("top: %s", why.text[0] ? why.text : hed_err_text(err));
        goto out;
    }
    (void)setlocale(LC_CTYPE, "");
    terminal = newterm(NULL, stdout, stdin);
    if (!terminal) {
        const char *name = getenv("TERM");

        hed_cli_say("top: the terminal '%s' (TERM) is not known; heddle top -1 prints once",
                    name ? name : "");
        err = HED_ENOTSUP;
        goto out;
    }
    show_screen(&s, signals, how->every);
    delscreen(terminal);
    err = s.err;
    if (err)
        hed_cli_say("top: %s", hed_err_text(err));
out:
    hed_live_close(s.live);
    hed_top_list_free(&s.list);
    hed_top_page_free(&s.page);
    if (signals >= 0)
        close(signals);
    return err ? HED_EXIT_FAILED : HED_EXIT_OK;
}
