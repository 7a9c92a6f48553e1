import { comparePositions, toPosition } from './event-log.mjs';
import {
  ReadDirection,
  createCaughtUp,
  checkpoint,
  confirmation,
  eventResponse,
  failures,
  streamName,
  streamNotFound,
} from './protocol.mjs';

/**
 * @typedef {import('./event-log.mjs').EventLog} EventLog
 * @typedef {import('./event-log.mjs').Position} Position
 * @typedef {import('./event-log.mjs').Recorded} Recorded
 */

/** The page size of the server's own reads; also the search window of a filter that names none. */
const READ_BATCH = 32;
const BEGINNING = { commit: 0n, prepare: 0n };

/** Ends a read with a failure of the call. */
export class ReadFailure extends Error {
  /** @param {import('./protocol.mjs').Failure} failure */
  constructor(failure) {
    super(failure.details);
    this.failure = failure;
  }
}

/**
 * The responses to one read, produced lazily: those of a subscription never end.
 * @param {EventLog} log
 * @param {object} options
 * @param {AbortSignal} signal
 * @param {() => Promise<void> | undefined} search is called for each event of the log that is looked at
 */
export function responses(log, options, signal, search) {
  const subscription = options.hasSubscription();
  if (options.hasStream()) {
    return subscription
      ? subscribeToStream(log, options, signal)
      : readStream(log, options, BigInt(options.getCount()));
  }
  if (!options.hasAll()) throw new ReadFailure(failures.invalidArgument('neither stream nor $all'));
  if (subscription) return subscribeToAll(log, options, signal, search);
  return readAll(log, options, BigInt(options.getCount()), search);
}

const isBackwards = (options) => options.getReadDirection() === ReadDirection.BACKWARDS;

const structuredIds = (options) => !options.getUuidOption()?.hasString();

function* readStream(log, options, count) {
  const from = options.getStream();
  const name = streamName(from.getStreamIdentifier());
  if (log.isDeleted(name)) throw new ReadFailure(failures.streamDeleted(name));
  const events = log.stream(name);
  const first = log.firstVisible(name);
  if (first === events.length) {
    yield streamNotFound(name);
    return;
  }
  const how = { structuredIds: structuredIds(options), fromAll: false };
  const step = isBackwards(options) ? -1 : 1;
  let index = 0;
  if (from.hasRevision()) index = clamp(BigInt(from.getRevision()), events.length);
  if (from.hasEnd()) index = events.length;
  if (step === -1) index = Math.min(index, events.length - 1);
  else index = Math.max(index, first);
  for (let left = count; left > 0n && index >= first && index < events.length; left -= 1n) {
    yield eventResponse(events[index], how);
    index += step;
  }
}

/** A revision may be any 64-bit number, but an index may not. */
const clamp = (revision, length) => (revision > BigInt(length) ? length : Number(revision));

/** Going forwards, a position is before its record; going backwards, after it. That is the server's rule. */
async function* readAll(log, options, count, search) {
  const from = options.getAll();
  const how = { structuredIds: structuredIds(options), fromAll: true };
  const step = isBackwards(options) ? -1 : 1;
  let index = 0;
  if (from.hasPosition()) {
    index = log.indexFrom(validPosition(log, from.getPosition()), { exclusive: false });
  }
  if (from.hasEnd()) index = log.events.length;
  if (step === -1) index -= 1;
  const { passes } = filterOf(options);
  for (let left = count; left > 0n && log.events[index] !== undefined; index += step) {
    const searching = search();
    if (searching) await searching;
    if (!passes(log.events[index])) continue;
    yield eventResponse(log.events[index], how);
    left -= 1n;
  }
}

async function* subscribeToStream(log, options, signal) {
  const from = options.getStream();
  const name = streamName(from.getStreamIdentifier());
  const how = { structuredIds: structuredIds(options), fromAll: false };
  let next = 0n;
  if (from.hasRevision()) next = BigInt(from.getRevision()) + 1n;
  if (from.hasEnd()) next = BigInt(log.stream(name).length);
  yield confirmation(crypto.randomUUID());
  let live = false;
  while (!signal.aborted) {
    const event = next < log.stream(name).length ? log.stream(name)[Number(next)] : undefined;
    if (event !== undefined) {
      next += 1n;
      yield eventResponse(event, how);
      continue;
    }
    if (!live) yield createCaughtUp();
    live = true;
    await appendAfter(log, () => next < log.stream(name).length, signal);
  }
}

/**
 * Catches up page by page and continues live. While catching up, a checkpoint is the last event sent or, if the filter
 * let nothing of the page through, the beginning of that page: it may be behind what was read, never ahead of it.
 */
async function* subscribeToAll(log, options, signal, search) {
  const from = options.getAll();
  const how = { structuredIds: structuredIds(options), fromAll: true };
  const { passes, window, interval } = filterOf(options);
  let index = 0;
  let pageStart = BEGINNING;
  if (from.hasPosition()) {
    pageStart = validPosition(log, from.getPosition());
    index = log.indexFrom(pageStart, { exclusive: true });
  }
  // A position ahead of the log hides everything up to it.
  const after = from.hasPosition() ? pageStart : null;
  if (from.hasEnd()) index = log.events.length;
  yield confirmation(crypto.randomUUID());

  let considered = 0;
  /** @type {Position} */
  let lastCheckpoint = { commit: -1n, prepare: -1n };
  const isNews = (position) => comparePositions(position, lastCheckpoint) > 0;
  for (let atEnd = from.hasEnd(); !atEnd;) {
    let reached = pageStart;
    let sent = 0;
    let searched = 0;
    while (index < log.events.length && sent < READ_BATCH && searched < window) {
      const event = log.events[index];
      const searching = search();
      if (searching) await searching;
      index += 1;
      searched += 1;
      pageStart = { commit: event.end, prepare: 0n };
      if (!passes(event)) continue;
      sent += 1;
      reached = toPosition(event);
      yield eventResponse(event, how);
    }
    considered += searched;
    atEnd = index >= log.events.length && sent < READ_BATCH && searched < window;
    if (!atEnd && considered >= interval) {
      considered %= interval;
      if (isNews(reached)) {
        lastCheckpoint = reached;
        yield checkpoint(reached);
      }
    }
  }

  yield createCaughtUp();
  while (!signal.aborted) {
    await appendAfter(log, () => index < log.events.length, signal);
    for (; index < log.events.length && !signal.aborted; index += 1) {
      const event = log.events[index];
      const position = toPosition(event);
      if (after !== null && comparePositions(position, after) <= 0) continue;
      if (passes(event)) yield eventResponse(event, how);
      considered += 1;
      if (considered < interval) continue;
      considered = 0;
      lastCheckpoint = position;
      yield checkpoint(position);
    }
  }
}

/** @returns {{ passes: (event: Recorded) => boolean, window: number, interval: number }} */
function filterOf(options) {
  if (!options.hasFilter()) return { passes: () => true, window: READ_BATCH, interval: Infinity };
  const filter = options.getFilter();
  const multiplier = filter.getCheckpointintervalmultiplier();
  if (multiplier === 0) {
    throw new ReadFailure(failures.invalidArgument('checkpointIntervalMultiplier is 0'));
  }
  const onStream = filter.hasStreamIdentifier();
  const expression = onStream ? filter.getStreamIdentifier() : filter.getEventType();
  if (expression === undefined) throw new ReadFailure(failures.invalidArgument('empty filter'));
  const matches = matcher(expression);
  const window = filter.hasMax() ? filter.getMax() : READ_BATCH;
  return {
    passes: (event) => matches(onStream ? event.stream : event.type),
    window,
    interval: multiplier * window,
  };
}

function matcher(expression) {
  if (expression.getRegex() !== '') {
    const regex = new RegExp(expression.getRegex());
    return (text) => regex.test(text);
  }
  const prefixes = expression.getPrefixList();
  return (text) => prefixes.some((prefix) => text.startsWith(prefix));
}

/** @returns {Position} */
function validPosition(log, message) {
  const position = {
    commit: BigInt(message.getCommitPosition()),
    prepare: BigInt(message.getPreparePosition()),
  };
  if (!log.isPosition(position)) throw new ReadFailure(failures.invalidPosition());
  return position;
}

/** Resolves when there is more to read, or when the reader has gone. */
function appendAfter(log, hasMore, signal) {
  return new Promise((resolve) => {
    if (signal.aborted || hasMore()) return resolve();
    const done = () => {
      if (!signal.aborted && !hasMore()) return;
      stop();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const stop = log.onAppend(done);
    signal.addEventListener('abort', done);
  });
}
