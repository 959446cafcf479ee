/* Graphs: work as nodes with edges, built call by call or by capturing streams, then instantiated
 * and run.
 *
 * A node holds work (driver/stream/work.h), or another graph. Capturing turns work that would have
 * been queued into nodes: hed_submit() calls hed_capture_add().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/stream/stream.h"
#include "driver/stream/work.h"

struct hed_graph;
struct hed_graph_exec;
struct hed_capture;

/* Adds the work as a node behind what the capturing stream depends on. The caller has seen
 * s->capture set. STREAM_CAPTURE_INVALIDATED if the capture has become invalid. Takes ownership of
 * the work even on failure. */
CUresult hed_capture_add(struct hed_stream *s, struct hed_work *w);

/* Events during a capture: recording stores the stream's dependencies in the event, and a stream
 * that waits for such an event joins the capture. */
CUresult hed_capture_record(struct hed_stream *s, struct hed_event *e);
CUresult hed_capture_wait(struct hed_stream *s, struct hed_event *e);

/* The event is recorded again or destroyed: forgets what it knows about a capture. */
void hed_capture_forget(struct hed_event *e);

/* The program has done something that a capture does not survive, such as synchronising a capturing
 * stream. Invalidates the stream's capture and returns the error for the call. */
CUresult hed_capture_broken(struct hed_stream *s);

/* The program has queried an event that was recorded inside a capture: invalidates the capture. */
void hed_capture_event_asked(struct hed_event *e);

/* Destroys the graphs that the program has left, before the table of handles goes: a node owns the
 * graphs in it, and destroys them itself. */
void hed_graph_driver_fini(struct hed_driver *d);

/* The stream's context is being destroyed: ends its capture. */
void hed_capture_stream_gone(struct hed_stream *s);

/* The program destroys a stream. If it is the origin of a capture, the capture ends; if it has
 * joined one, the capture goes on without it. */
void hed_capture_stream_destroyed(struct hed_stream *s);

/* May this thread make a call now that is unsafe during captures, such as cuMemAlloc?
 * STREAM_CAPTURE_UNSUPPORTED if a capture forbids it in this thread's mode; that capture becomes
 * invalid. Cheap while no stream captures. */
CUresult hed_capture_unsafe(struct hed_layer *self);

/* For work that synchronises with the legacy stream: STREAM_CAPTURE_IMPLICIT while a blocking
 * stream of the context captures; that capture becomes invalid. would_be: the same answer to a
 * question, which leaves the capture alone. */
CUresult hed_capture_implicit(struct hed_context *c);
CUresult hed_capture_would_be_implicit(struct hed_context *c);

/* References to the contents of an executable graph. */
void hed_graph_exec_ref(struct hed_graph_exec *g);
void hed_graph_exec_unref(struct hed_graph_exec *g);
