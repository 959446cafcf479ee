/* Fuzz target: what a program and the command accept from each other about snapshots. What is
 * accepted has texts that end and numbers that are known.
 */
#include "harness/fuzz.h"

#include <string.h>

#include "base/err.h"
#include "move/talk/talk.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hed_talk_request q;
    struct hed_talk_answer a;
    struct hed_why why = {""};

    if (hed_talk_check_request(data, size, 0, &q, &why) == 0) {
        must(size == sizeof q && q.fds == 0 && q.kind >= 1 && q.kind <= HED_TALK_KIND_LAST);
        must(strlen(q.address) < sizeof q.address && strlen(q.label) < sizeof q.label);
    } else {
        must(why.text[0] != 0);
    }
    if (hed_talk_check_answer(data, size, &a, NULL) == 0) {
        must(size == sizeof a && a.err <= 0 && a.state <= HED_TALK_STATE_LAST);
        must(strlen(a.why) < sizeof a.why && strlen(a.program) < sizeof a.program);
    }
    return 0;
}
