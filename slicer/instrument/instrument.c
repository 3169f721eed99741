/* SPDX-License-Identifier: MIT */
/* The software recorder in a module: reads bitcode, gives functions a recorder, and writes the bitcode. See
 * instrument.h. */
#include "slicer/instrument.h"

#include "slicer/instrument/recorded.h"
#include "slicer/instrument/rest.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Comdat.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>

/* Functions with loops also get a rest. */
static bool make_rests(struct instrument *in, struct plain_copy *copies, const values *tables)
{
    bool whole = true, any = false;

    for (size_t i = 0; i < in->all.n; i++) {
        copies[i].wanted = in->all.v[i].plain && !in->all.v[i].enters && etch_rest_allows(in->all.v[i].body);
        any |= copies[i].wanted;
    }
    if (any)
        whole = etch_copy_plain(in->emitter.module, copies, in->all.n, tables, ETCH_SOFT_REST_SUFFIX);
    for (size_t i = 0; i < in->all.n && whole; i++)
        if (copies[i].wanted)
            whole = etch_rest_make(&in->emitter, in->all.v[i].body, copies[i].plain, &in->all.v[i].rest);
    return whole;
}

static bool copy_plain(struct instrument *in)
{
    struct plain_copy *copies = calloc(in->all.n + 1, sizeof(*copies));
    values tables = {0};
    bool whole = copies != NULL, any = false;

    for (size_t i = 0; i < in->all.n && whole; i++) {
        copies[i].function = in->all.v[i].body;
        any |= copies[i].wanted = etch_can_copy(in->all.v[i].body, &tables);
    }
    if (any)
        whole = etch_copy_plain(in->emitter.module, copies, in->all.n, &tables, ETCH_SOFT_PLAIN_SUFFIX);
    for (size_t i = 0; i < in->all.n && whole; i++)
        in->all.v[i].plain = copies[i].plain;
    whole = whole && make_rests(in, copies, &tables);
    etch_array_free(&tables);
    free(copies);
    return whole;
}

/* The recording code calls from inline assembly and walks frames, so the frame must be set up before any of it.
 * sanitize_hwaddress switches shrink-wrapping off in code generation, and nothing else there reads the flag. */
static void prepare_frame(const struct emitter *e, LLVMValueRef function)
{
    LLVMAttributeIndex index = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;

    etch_set_flag(e, function, "noredzone");
    etch_set_flag(e, function, "sanitize_hwaddress");
    LLVMRemoveStringAttributeAtIndex(function, index, "frame-pointer", 13);
    LLVMAddAttributeAtIndex(function, index, LLVMCreateStringAttribute(e->context, "frame-pointer", 13, "all", 3));
}

static bool record_function(struct instrument *in, const struct recorded *r, values *calls)
{
    struct flow_graph graph = {0};
    bool whole;

    etch_split_switches(&in->emitter, r->body);
    etch_cursor_open(&in->emitter, r->body);
    whole = etch_calls_prepare(in, r->body, calls);
    if (whole && !r->enters)
        etch_cursor_abi_returns(&in->emitter, r->body);
    whole = whole && etch_flow_graph_build(&graph, r->body, etch_call_classify, in);
    if (whole)
        etch_rest_find(&graph, r->lit ? r->rest : NULL);
    whole = whole && etch_slack_check(&graph);
    graph.lit = graph.checks ? r->lit : NULL;
    graph.rest = graph.lit ? graph.rest : NULL;
    if (whole && graph.lit)
        whole = (!graph.rest || etch_dark_nodes(&graph)) && etch_dark_nodes(&graph);
    if (whole && (graph.calls || r->enters))
        prepare_frame(&in->emitter, r->body);
    whole = whole && etch_emit_function(&in->emitter, &graph, r->enters, r->plain);
    if (whole && r->rest && LLVMGetComdat(r->body))
        LLVMSetComdat(r->rest, LLVMGetComdat(r->body));
    in->count.functions++;
    in->count.nodes += graph.nodes.n;
    for (size_t i = 0; i < graph.nodes.n; i++)
        in->count.segments += graph.nodes.v[i].head;
    etch_flow_graph_release(&graph);
    return whole;
}

/* Makes registers of the slots of cursor.c. All other variables that can be registers are registers already. Functions
 * that must not be optimised are left alone. */
static void promote(LLVMModuleRef module)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(module, "function(mem2reg)", NULL, options);

    LLVMDisposePassBuilderOptions(options);
    if (error)
        LLVMConsumeError(error);
}

static bool is_unused(LLVMValueRef function)
{
    LLVMLinkage linkage = LLVMGetLinkage(function);

    return !LLVMGetFirstUse(function) && (linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage);
}

/* Deletes the empty function, and the entry of a local function if nothing uses it. The assembly of the entry names the
 * reporter and the plain copy, so they are deleted after it. */
static void drop_unused(struct recorded *r)
{
    if (r->rest && is_unused(r->rest)) {
        LLVMDeleteFunction(r->rest);
        r->rest = NULL;
    }
    if (r->before != r->body)
        LLVMDeleteFunction(r->before);
    if (!r->entry || !is_unused(r->entry))
        return;
    LLVMDeleteFunction(r->entry);
    if (r->plain && !is_unused(r->plain))
        return;
    if (r->reporter != r->body)
        LLVMDeleteFunction(r->reporter);
    if (r->plain)
        LLVMDeleteFunction(r->plain);
    r->plain = NULL;
}

/* The linker may take the copy of a comdat from another file than the reporter. */
static void allow_detour(const struct instrument *in, const struct recorded *r)
{
    if (r->plain && r->reporter && !LLVMGetComdat(r->plain) && !LLVMGetComdat(r->reporter))
        etch_allow_detour(&in->emitter, r->plain, r->reporter);
}

static int instrument_module(LLVMModuleRef module, const struct etch_instrument_options *options,
                             struct etch_instrument_count *count, struct etch_error *err)
{
    struct instrument in = {.options = options};
    values calls = {0};
    bool whole;

    etch_emitter_open(&in.emitter, module);
    whole = etch_recorded_choose(&in) && (options->lab || copy_plain(&in)) && etch_recorded_separate(&in);
    for (size_t i = 0; i < in.all.n && whole; i++)
        whole = (!in.all.v[i].plain || etch_calls_prepare_plain(&in, in.all.v[i].plain, &calls)) &&
                (!in.all.v[i].rest || etch_calls_prepare_plain(&in, in.all.v[i].rest, &calls)) &&
                record_function(&in, &in.all.v[i], &calls);
    for (size_t i = 0; i < in.all.n && whole; i++) {
        drop_unused(&in.all.v[i]);
        allow_detour(&in, &in.all.v[i]);
    }
    if (whole)
        promote(module);
    etch_emitter_close(&in.emitter);
    etch_array_free(&calls);
    etch_array_free(&in.all);
    etch_pointers_release(&in.index);
    etch_pointers_release(&in.stubs);
    if (count)
        *count = in.count;
    return whole ? 0 : etch_error_no_memory(err);
}

static int verify(LLVMModuleRef module, struct etch_error *err)
{
    char *message = NULL;
    int status = 0;

    if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
        status = etch_error_set(err, "the recorder made a module that LLVM refuses: %s", message);
    LLVMDisposeMessage(message);
    return status;
}

int etch_instrument(const char *from, const char *to, const struct etch_instrument_options *options,
                    struct etch_instrument_count *count, struct etch_error *err)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer = NULL;
    LLVMModuleRef module = NULL;
    char *message = NULL;
    int status = -1;

    if (LLVMCreateMemoryBufferWithContentsOfFile(from, &buffer, &message)) {
        etch_error_set(err, "cannot read %s: %s", from, message);
        LLVMDisposeMessage(message);
    } else if (LLVMParseBitcodeInContext2(context, buffer, &module)) {
        etch_error_set(err, "%s is not bitcode of this LLVM", from);
    } else if (instrument_module(module, options, count, err) == 0 && verify(module, err) == 0) {
        status = LLVMWriteBitcodeToFile(module, to) ? etch_error_set(err, "cannot write %s", to) : 0;
    }
    if (module)
        LLVMDisposeModule(module);
    if (buffer)
        LLVMDisposeMemoryBuffer(buffer);
    LLVMContextDispose(context);
    return status;
}
