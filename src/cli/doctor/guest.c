/* The doctor checks whether programs of this machine can use the GPUs of its host: in a QEMU guest,
 * or if the setting `gpu` says vm:. See docs/vm.md. */
#include "cli/doctor/guest.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/doctor/doctor.h"
#include "core/config.h"
#include "remote/remote.h"

#define ANSWER_NS (UINT64_C(2) * HED_NS_PER_S)

#define ON_HOST "On the host: `heddle serve --listen vm:NAME`, and QEMU with "

/* What is missing is bad only if programs are to use it. */
static enum hed_finding_level
finding_level(bool wanted, enum hed_finding_level bad)
{
    return wanted ? bad : HED_FINDING_OK;
}

static bool
has_device(const struct hed_guest_facts *f)
{
    return f->has_vsock || f->windows > 0;
}

static void
report_kind(struct hed_doctor *d, const struct hed_guest_facts *f, bool wanted)
{
    if (f->kind == HED_GUEST_QEMU && !wanted && !has_device(f)) {
        hed_doctor_say(d, HED_FINDING_OK, "guest",
                       "this machine is a guest of QEMU, without the devices that `--gpu vm:` "
                       "needs to use the host's GPUs");
        hed_doctor_hint(d, ON_HOST "$(heddle vm qemu-args NAME).");
    } else if (f->kind == HED_GUEST_QEMU) {
        hed_doctor_say(d, HED_FINDING_OK, "guest", "this machine is a guest of QEMU");
    } else if (f->kind == HED_GUEST_UNKNOWN) {
        hed_doctor_say(d, HED_FINDING_OK, "guest",
                       "this machine is a guest%s%s, but nothing shows that it is one of QEMU, "
                       "which `--gpu vm:` is for",
                       f->maker[0] ? " made by " : "", f->maker);
    } else {
        hed_doctor_say(d, finding_level(wanted, HED_FINDING_WARN), "guest",
                       "this machine does not look like a guest, which `--gpu vm:` is for");
        hed_doctor_hint(d, "For a server on this machine use its address, such as shm:PATH.");
    }
}

/* ---- the vsock ------------------------------------------------------------------------------- */

static void
report_vsock(struct hed_doctor *d, const struct hed_guest_facts *f, bool wanted)
{
    const enum hed_finding_level bad = finding_level(wanted, HED_FINDING_FAIL);

    if (!f->has_vsock) {
        hed_doctor_say(d, bad, "vsock",
                       "there is no vsock device, so `--gpu vm:` cannot reach the host");
        hed_doctor_hint(d, ON_HOST "$(heddle vm qemu-args NAME), which adds shared RAM and "
                                   "-chardev socket,id=heddle-vsock,path=SOCKET "
                                   "-device vhost-user-vsock-pci,chardev=heddle-vsock");
    } else if (!f->vsock_driven) {
        hed_doctor_say(d, bad, "vsock", "the vsock device has no driver");
        hed_doctor_hint(d, "Load the kernel's module: modprobe vmw_vsock_virtio_transport");
    } else if (!f->was_asked) {
        hed_doctor_say(d, HED_FINDING_OK, "vsock", "there is a device; the host was not asked");
    } else if (f->answer == 0) {
        hed_doctor_say(d, HED_FINDING_OK, "vsock", "the host answers at port %d", HED_ADDRESS_PORT);
    } else {
        hed_doctor_say(d, bad, "vsock", "the host does not accept a connection at port %d: %s",
                       HED_ADDRESS_PORT, f->reason);
        hed_doctor_hint(d, "Check on the host that the server runs (`heddle vm list`). If it was "
                           "restarted, QEMU must be restarted, too.");
    }
}

/* ---- windows --------------------------------------------------------------------------------- */

static void
report_no_window(struct hed_doctor *d, bool wanted)
{
    hed_doctor_say(d, finding_level(wanted, HED_FINDING_WARN), "window",
                   "there is no window (ivshmem device), so all data would go through the vsock, "
                   "which is slower");
    hed_doctor_hint(d, ON_HOST
                    "$(heddle vm qemu-args NAME), which adds -object "
                    "memory-backend-file,id=heddle-window,mem-path=/dev/shm/heddle-vm-UID-NAME,"
                    "size=1G,share=on -device ivshmem-plain,memdev=heddle-window");
}

static void
report_refused_window(struct hed_doctor *d, const char *slot, const struct hed_guest_file *file,
                      const char *lockdown, bool wanted)
{
    const enum hed_finding_level bad = finding_level(wanted, HED_FINDING_WARN);

    if (!file->is_open) {
        hed_doctor_say(d, bad, "window",
                       "this user may not use the ivshmem device %s (mode %04o, group %s), so all "
                       "data goes through the vsock, which is slower",
                       slot, (unsigned)file->mode, file->group);
        if (!file->is_of_root && (file->mode & 060) == 060)
            hed_doctor_hint(d, "As root: usermod -aG %s USER; then log in again.", file->group);
        else
            hed_doctor_hint(d, "60-heddle-window.rules, which comes with heddle, gives it to the "
                               "group heddle. As root: systemd-sysusers; udevadm trigger; "
                               "usermod -aG heddle USER; then log in again.");
    } else if (lockdown[0]) {
        hed_doctor_say(
            d, HED_FINDING_WARN, "window",
            "the kernel is locked down (%s), as with secure boot: no program may use "
            "the ivshmem device %s, and all data goes through the vsock, which is slower",
            lockdown, slot);
        hed_doctor_hint(d, "To use it, start the guest without secure boot.");
    } else {
        hed_doctor_say(d, bad, "window", "the ivshmem device %s cannot be mapped: %s", slot,
                       hed_err_text(HED_EACCESS));
        hed_doctor_hint(d, "A security module, or the container of this process, may forbid it.");
    }
}

static void
report_window(struct hed_doctor *d, const struct hed_window_device *w,
              const struct hed_guest_file *file, const char *lockdown, bool wanted)
{
    const unsigned long long mib = (unsigned long long)(w->size >> 20);

    if (w->error == HED_EACCESS) {
        report_refused_window(d, w->slot, file, lockdown, wanted);
    } else if (w->error) {
        hed_doctor_say(d, HED_FINDING_WARN, "window", "the ivshmem device %s cannot be used: %s",
                       w->slot, hed_err_text(w->error));
        hed_doctor_hint(d, "Look for the device in the kernel's log (dmesg): there may be no room "
                           "for its memory.");
    } else if (w->header.magic[0] == '\0') {
        hed_doctor_say(d, HED_FINDING_OK, "window",
                       "the ivshmem device %s (%llu MiB) is not heddle's", w->slot, mib);
    } else if (w->header.version != HED_WINDOW_VERSION) {
        hed_doctor_say(d, HED_FINDING_WARN, "window",
                       "%s is a window of version %u, and this heddle knows version %u", w->slot,
                       w->header.version, HED_WINDOW_VERSION);
        hed_doctor_hint(d, "Install the same version of heddle on the host and in the guest.");
    } else {
        hed_doctor_say(d, HED_FINDING_OK, "window", "%s: %llu MiB; the host calls this guest `%s`",
                       w->slot, mib, w->header.name);
    }
}

static bool
has_window(const struct hed_guest_facts *f)
{
    for (int i = 0; i < f->windows && i < HED_DOCTOR_WINDOWS; i++)
        if (f->window[i].header.magic[0])
            return true;
    return false;
}

void
hed_guest_report(struct hed_doctor *d, const struct hed_guest_facts *f, bool wanted)
{
    if (f->kind == HED_GUEST_NOT && !wanted && f->windows == 0)
        return;
    report_kind(d, f, wanted);
    if (!wanted && (f->kind == HED_GUEST_QEMU ? !has_device(f) : f->windows == 0))
        return;
    report_vsock(d, f, wanted);
    wanted = wanted || (f->was_asked && f->answer == 0); /* a server of heddle expects us */
    for (int i = 0; i < f->windows && i < HED_DOCTOR_WINDOWS; i++)
        report_window(d, &f->window[i], &f->file[i], f->lockdown, wanted);
    if (f->windows == 0)
        report_no_window(d, wanted);
}

/* The server closes a connection that says nothing. */
static void
ask_host(struct hed_guest_facts *f)
{
    struct hed_address host;
    struct hed_why why = {""};
    int fd = -1;

    if (hed_address_parse("vm:", &host, &why) != 0)
        return;
    f->was_asked = true;
    f->answer = host.transport->link->connect(&host, hed_now_ns() + ANSWER_NS, &fd, &why);
    (void)hed_str_copy(f->reason, sizeof f->reason, why.text);
    if (f->answer == 0)
        (void)close(fd);
}

void
hed_doctor_guest(struct hed_doctor *d)
{
    const bool wanted = strncmp(d->config.gpu, "vm:", 3) == 0;
    struct hed_guest_facts f;

    hed_guest_look("", &f);
    /* Another hypervisor may have another program at that port. */
    if (f.has_vsock && (wanted || f.kind == HED_GUEST_QEMU || has_window(&f)))
        ask_host(&f);
    d->has_host = f.kind == HED_GUEST_QEMU && f.vsock_driven && f.was_asked && f.answer == 0;
    hed_guest_report(d, &f, wanted);
}
