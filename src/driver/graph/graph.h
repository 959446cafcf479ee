/* Graphs: work as nodes with edges; made by hand or by capturing streams; instantiated and run.
 *
 * A node holds work (driver/stream/work.h), or another graph. Capturing is making nodes out of work
 * that would have been queued: hed_submit asks hed_capture_add first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/stream/stream.h"
#include "driver/stream/work.h"

struct hed_graph;
struct hed_graph_exec;
struct hed_capture;

/* Is the stream capturing? Takes the work as a node behind what the stream depends on. The caller
 * has seen s->capture set; the capture may have been invalidated: STREAM_CAPTURE_INVALIDATED. Takes
 * the work in any case. */
CUresult hed_capture_add(struct hed_stream *s, struct hed_work *w);

/* Events while capturing: recording puts the stream's dependencies into the event; waiting for such
 * an event makes the waiting stream join the capture. */
CUresult hed_capture_record(struct hed_stream *s, struct hed_event *e);
CUresult hed_capture_wait(struct hed_stream *s, struct hed_event *e);

/* The event is recorded anew or destroyed: what it remembers of a capture is gone. */
void hed_capture_forget(struct hed_event *e);

/* Something was done that a capture does not survive (synchronising a capturing stream): the
 * answer for the call, after the stream's capture has been made invalid. */
CUresult hed_capture_broken(struct hed_stream *s);

/* An event recorded inside a capture was asked about: the capture is invalid after that. */
void hed_capture_event_asked(struct hed_event *e);

/* A context dies: captures of its streams end. */
void hed_capture_stream_gone(struct hed_stream *s);

/* The program destroys a stream: if it is a capture's origin the capture ends, if it joined a
 * capture the capture goes on without it. */
void hed_capture_stream_destroyed(struct hed_stream *s);

/* May a call that is unsafe during captures be made by this thread now? Called by cuMemAlloc and
 * its like: STREAM_CAPTURE_UNSUPPORTED where a capture in this thread's mode forbids it (and the
 * capture is invalidated). Cheap when nothing captures. */
CUresult hed_capture_unsafe(struct hed_layer *self);

/* Work that synchronises with the legacy stream while a blocking stream of the context captures:
 * STREAM_CAPTURE_IMPLICIT. */
CUresult hed_capture_implicit(struct hed_context *c);

/* What an executable graph runs: counted. */
void hed_graph_exec_ref(struct hed_graph_exec *g);
void hed_graph_exec_unref(struct hed_graph_exec *g);
