import { once } from 'node:events';
import { createServer } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { setTimeout as wait } from 'node:timers/promises';
import { findCaller, mayAccess } from './access.mjs';
import { CompressingServer } from './compression.mjs';
import { EventLog } from './event-log.mjs';
import { createHttpApi } from './http-api.mjs';
import { pickDelay, WriteQueue } from './latency.mjs';
import { Members } from './members.mjs';
import {
  BatchAppendResp,
  GossipService,
  ServerFeaturesService,
  StreamsService,
  batchSuccess,
  createClusterInfo,
  deleteResponse,
  parseExpected,
  failures,
  grpc,
  parseProposedEvent,
  sizeOnDisk,
  statuses,
  streamIdentifier,
  streamName,
  supportedMethods,
  uuid,
} from './protocol.mjs';
import { ReadFailure, responses } from './reads.mjs';

/**
 * @typedef {import('./event-log.mjs').Expected} Expected
 * @typedef {import('./event-log.mjs').Outcome} Outcome
 * @typedef {import('./event-log.mjs').Proposed} Proposed
 * @typedef {import('./protocol.mjs').Failure} Failure
 * @typedef {{ stream: string, expected: Expected, events: Proposed[], deadline: number }} Request
 * @typedef {{
 *   success: (outcome: Outcome) => void,
 *   wrongVersion: (current: bigint, expected: Expected) => void,
 *   deleted: () => void,
 *   timeout: () => void,
 *   notReady: () => void,
 *   unknown: (message: string) => void,
 *   fail: (failure: Failure) => void,
 * }} Reply
 */

const HOST = '127.0.0.1';
const MEBIBYTE = 1024 * 1024;

/** The faults that a test has planned for the next calls. */
class Faults {
  delayMs = 0;
  /** @type {{ append?: Promise<void>, read?: Promise<void> }} until when new calls wait */
  releases = {};
  /** @type {Map<string, unknown[]>} */
  #planned = new Map();

  plan(kind, count, what) {
    const planned = this.#planned.get(kind) ?? [];
    for (let i = 0; i < count; i += 1) planned.push(what);
    this.#planned.set(kind, planned);
  }

  take(kind) {
    return this.#planned.get(kind)?.shift();
  }

  hold(kind) {
    let release;
    this.releases[kind] = new Promise((resolve) => (release = resolve));
    return release;
  }

  clear() {
    this.#planned.clear();
    this.delayMs = 0;
    this.releases = {};
  }
}

/** @param {import('./server.d.mts').EventStoreDbOptions} [options] */
export async function startEventStoreDb(options = {}) {
  const members = new Members();
  const log = new EventLog({ file: options.log, recentIds: options.recentIds });
  const node = await startNode(options, log, members);
  if (!options.leaderless) members.elect();
  return node;
}

/**
 * Starts one node of a cluster.
 * @param {import('./server.d.mts').EventStoreDbOptions} options
 * @param {EventLog} log
 * @param {Members} members
 */
export async function startNode(
  {
    port: wantedPort = 0,
    users: initialUsers,
    tls,
    maxAppendSize = MEBIBYTE,
    writeTimeoutMs = 2000,
    version = '26.0.3',
    delays: initialDelays,
    searchMs = 0,
  },
  log,
  members,
) {
  const users = initialUsers && { ...initialUsers };
  if (users && !tls) throw new Error('users need tls: the client sends credentials over TLS only');
  const self = members.join(tls ? 'localhost' : HOST);
  const writes = new WriteQueue();
  let delays = initialDelays;
  let appendsUnderWay = 0;
  const faults = new Faults();
  /** @type {Map<number, import('node:net').Socket>} by the port of the client's end */
  const sockets = new Map();
  /** @type {Set<object>} */
  const subscriptions = new Set();
  const requestCounts = {
    appends: 0,
    streamReads: 0,
    logReads: 0,
    subscriptions: 0,
    others: 0,
    events: 0,
    searched: 0,
  };
  let port = wantedPort;

  const dropConnection = (call) => sockets.get(Number(call.getPeer().split(':').at(-1)))?.destroy();

  // A pending timer must not keep a test run alive.
  const pause = (ms) => wait(Math.max(0, ms), undefined, { ref: false });

  /**
   * Refuses what only a leader does. Followers pass the rest on to it, unless the client wants the leader itself.
   * @returns {Failure | null}
   */
  function findLeaderFailure(call) {
    const { leader } = members;
    if (leader === null) return failures.notReady();
    const isRequired = call.metadata.get('requires-leader')[0] === 'true';
    return leader === self || !isRequired ? null : failures.notLeader(leader);
  }

  /** @returns {Failure | null} */
  function findAccessFailure(call) {
    if (!users) return null;
    const caller = findCaller(call);
    if (caller === null) return failures.accessDenied();
    const isAuthenticated =
      Object.hasOwn(users, caller.name) && users[caller.name] === caller.password;
    return isAuthenticated ? null : failures.unauthenticated();
  }

  /** Access control lists are obeyed where there is an administrator to change them. */
  function isDenied(call, action, stream) {
    if (!users || !Object.hasOwn(users, 'admin')) return false;
    return !mayAccess(log, findCaller(call)?.name ?? '', action, stream);
  }

  /**
   * One append, once it has arrived completely.
   * @param {Request} request
   * @param {object} call
   * @param {Reply} reply
   */
  async function append({ stream, expected, events, deadline }, call, reply) {
    requestCounts.appends += 1;
    const leader = faults.take('notLeader');
    if (leader) return reply.fail(failures.notLeader({ host: HOST, port, ...leader }));
    const failing = faults.take('failAppends');
    if (failing === 'unavailable') return reply.fail(failures.unavailable());
    if (failing === 'not-ready') return reply.notReady();
    if (failing === 'timeout') return reply.timeout();

    appendsUnderWay += 1;
    try {
      const arrivedAt = performance.now();
      const usualMs = delays ? pickDelay(delays, appendsUnderWay) : 0;
      // Half of it before the write, so that a kill finds appends that are written and others that are not.
      if (usualMs > 0) await writes.pass(usualMs / 2, pause);
      // A dead node writes nothing.
      if (!self.isAlive) return;
      const refused = findLeaderFailure(call);
      if (refused) return members.leader === null ? reply.notReady() : reply.fail(refused);

      let outcome;
      try {
        outcome = log.append(stream, expected, events);
        if (outcome.written) await log.sync();
      } catch (error) {
        console.error(error);
        return reply.unknown(String(error));
      }
      if (outcome.isDeleted) return reply.deleted();
      if (!outcome.written) return reply.wrongVersion(outcome.current, expected);

      const loss = faults.take('loseResponses');
      if (loss === 'silence') return;
      if (loss === 'drop') return dropConnection(call);
      if (loss === 'cancel') return reply.fail(failures.cancelled());
      await faults.releases.append;
      const delayMs = faults.delayMs + Math.max(0, arrivedAt + usualMs - performance.now());
      const patience = Math.min(writeTimeoutMs, deadline - Date.now());
      if (delayMs > 0) await pause(Math.min(delayMs, patience));
      if (delayMs > patience) return reply.timeout();
      return reply.success(outcome);
    } finally {
      appendsUnderWay -= 1;
    }
  }

  function batchAppends(call) {
    /** @type {Map<string, Request & { size: number }>} not final yet */
    const arriving = new Map();
    let underWay = 0;
    let over = false;
    let closing = false;
    const fail = (failure) => {
      if (over) return;
      over = true;
      call.emit('error', failure);
    };
    const close = () => {
      if (!closing || underWay > 0 || over) return;
      over = true;
      call.end();
    };
    const refused = findAccessFailure(call);
    if (refused?.code === grpc.status.UNAUTHENTICATED) return fail(refused);

    call.on('data', (message) => {
      if (over) return;
      const id = uuid(message.getCorrelationId());
      const respond = (stream, fill) => {
        if (over || call.cancelled) return;
        const response = new BatchAppendResp().setCorrelationId(message.getCorrelationId());
        fill(response.setStreamIdentifier(streamIdentifier(stream)));
        call.write(response);
        if (faults.take('doubleResponses')) call.write(response);
      };
      const options = message.getOptions();
      if (options) {
        const stream = streamName(options.getStreamIdentifier());
        const error = (status) => respond(stream, (response) => response.setError(status));
        const deadline = options.getDeadline()?.toDate().getTime() ?? Infinity;
        if (refused || isDenied(call, 'write', stream)) return error(statuses.accessDenied());
        if (deadline <= Date.now()) return error(statuses.timeout());
        const expected = parseExpected(options);
        if (expected === null) return error(statuses.badRequest('no expected revision'));
        arriving.set(id, { stream, expected, events: [], deadline, size: 0 });
      }
      const request = arriving.get(id);
      if (request === undefined) return;
      const error = (status) => respond(request.stream, (response) => response.setError(status));
      for (const proposal of message.getProposedMessagesList()) {
        const { event, missing } = parseProposedEvent(proposal);
        if (missing) {
          arriving.delete(id);
          return error(statuses.badRequest(`no ${missing}`));
        }
        request.size += sizeOnDisk(event);
        request.events.push(event);
      }
      if (request.size > maxAppendSize) {
        arriving.delete(id);
        return error(statuses.maximumAppendSizeExceeded(maxAppendSize));
      }
      if (!message.getIsFinal()) return;

      arriving.delete(id);
      underWay += 1;
      return append(request, call, {
        success: (outcome) =>
          respond(request.stream, (response) => response.setSuccess(batchSuccess(outcome))),
        wrongVersion: (current, expected) =>
          error(statuses.wrongExpectedVersion(current, expected)),
        deleted: () => error(statuses.streamDeleted(request.stream)),
        timeout: () => error(statuses.timeout()),
        notReady: () => error(statuses.notReady()),
        unknown: () => error(statuses.unknown()),
        fail,
      }).finally(() => {
        underWay -= 1;
        close();
      });
    });
    call.on('end', () => {
      closing = true;
      close();
    });
  }

  function search() {
    requestCounts.searched += 1;
    return searchMs > 0 && requestCounts.searched % 1_000 === 0 ? pause(searchMs) : undefined;
  }

  async function read(call) {
    const options = call.request.getOptions();
    const left = new AbortController();
    const leave = () => left.abort();
    call.once('cancelled', leave);
    call.once('close', leave);
    const refused = findAccessFailure(call);
    if (refused) return call.emit('error', refused);
    const stream = options.getStream()?.getStreamIdentifier();
    requestCounts[
      options.hasSubscription() ? 'subscriptions' : stream ? 'streamReads' : 'logReads'
    ] += 1;
    if (isDenied(call, 'read', stream ? streamName(stream) : '$all')) {
      return call.emit('error', failures.accessDenied());
    }
    const notHere = findLeaderFailure(call);
    if (notHere) return call.emit('error', notHere);
    if (options.hasSubscription()) {
      subscriptions.add(call);
      left.signal.addEventListener('abort', () => subscriptions.delete(call));
    }
    const cut = faults.take('cutReads');
    let events = 0;
    try {
      if (faults.delayMs > 0) await pause(faults.delayMs);
      await faults.releases.read;
      for await (const response of responses(log, options, left.signal, search)) {
        if (left.signal.aborted) return;
        if (response.hasEvent()) requestCounts.events += 1;
        if (cut !== undefined && response.hasEvent()) {
          if (events >= cut) return endRead(call, failures.unavailable());
          events += 1;
        }
        if (!call.write(response)) await drained(call, left.signal);
      }
      if (left.signal.aborted) return;
      if (cut !== undefined) return endRead(call, failures.unavailable());
      call.end();
    } catch (error) {
      if (error instanceof ReadFailure) return endRead(call, error.failure);
      console.error(error);
      endRead(call, failures.unknown(String(error)));
    }
  }

  /** @param {{ isFinal: boolean }} how */
  const remove = (how) => (call, callback) => {
    const options = call.request.getOptions();
    const stream = streamName(options.getStreamIdentifier());
    const refused = findAccessFailure(call) ?? findLeaderFailure(call);
    if (refused) return callback(refused);
    if (isDenied(call, 'delete', stream)) return callback(failures.accessDenied());
    const outcome = log.delete(stream, parseExpected(options), how);
    if (outcome.isDeleted) return callback(failures.streamDeleted(stream));
    if (!outcome.written) return callback(failures.wrongExpectedVersion(stream, outcome.current));
    return log.sync().then(
      () => callback(null, deleteResponse({ ...outcome, ...how })),
      (error) => callback(failures.unknown(String(error))),
    );
  };

  function endRead(call, failure) {
    subscriptions.delete(call);
    call.emit('error', failure);
  }

  // 23.10 does not compress.
  const Server = Number.parseInt(version, 10) >= 25 ? CompressingServer : grpc.Server;
  const server = new Server({ 'grpc.max_receive_message_length': 17 * MEBIBYTE });
  server.addService(ServerFeaturesService, {
    getSupportedMethods: (_call, callback) => {
      requestCounts.others += 1;
      callback(null, supportedMethods(version));
    },
  });
  server.addService(GossipService, {
    read: (_call, callback) => {
      requestCounts.others += 1;
      callback(null, createClusterInfo(members));
    },
  });
  server.addService(StreamsService, {
    read,
    delete: remove({ isFinal: false }),
    tombstone: remove({ isFinal: true }),
    batchAppend: batchAppends,
  });
  const connections = server.createConnectionInjector(grpc.ServerCredentials.createInsecure());
  // One port serves gRPC and the HTTP API, as the real one does.
  const http = createHttpApi(users ?? {}, members, self);
  http.on('request', () => (requestCounts.others += 1));
  const secured =
    tls &&
    createTlsServer({ ...tls, ALPNProtocols: ['h2', 'http/1.1'] }, (socket) => {
      if (socket.alpnProtocol === 'h2') connections.injectConnection(socket);
      else http.emit('connection', socket);
    }).on('tlsClientError', (_error, socket) => socket.destroy());

  /** HTTP/2 begins with PRI, and only gRPC speaks it. */
  const injectPlain = (socket) => {
    socket.once('readable', () => {
      const start = socket.read();
      if (start === null) return socket.destroy();
      socket.unshift(start);
      if (start.toString('latin1', 0, 3) === 'PRI') connections.injectConnection(socket);
      else http.emit('connection', socket);
    });
  };

  // We handle the sockets ourselves, so that a test can cut a connection or refuse the next one.
  const listener = createServer((socket) => {
    const { remotePort } = socket;
    sockets.set(remotePort, socket);
    socket.on('close', () => sockets.delete(remotePort));
    // 'close' reports what happens to a connection; a client may reset one.
    socket.on('error', () => socket.destroy());
    if (secured) secured.emit('connection', socket);
    else injectPlain(socket);
  });
  const listenAgain = async () => {
    listener.listen(port, HOST);
    await once(listener, 'listening');
    port = listener.address().port;
    Object.assign(self, { port, isAlive: true });
  };
  const stopListening = async () => {
    if (!listener.listening) return;
    self.isAlive = false;
    const closed = once(listener, 'close');
    listener.close();
    for (const socket of sockets.values()) socket.destroy();
    await closed;
  };
  await listenAgain();

  return {
    port,
    requestCounts,
    connectionString: tls ? `esdb://localhost:${port}` : `esdb://${HOST}:${port}?tls=false`,
    get appended() {
      return log.appended;
    },
    get subscriptions() {
      return subscriptions.size;
    },
    fault: {
      failAppends: (count, how = 'unavailable') => faults.plan('failAppends', count, how),
      loseResponses: (count, how = 'drop') => faults.plan('loseResponses', count, how),
      doubleResponses: (count) => faults.plan('doubleResponses', count, true),
      notLeader: (count, leader = {}) => faults.plan('notLeader', count, leader),
      cutReads: (count, afterEvents = 0) => faults.plan('cutReads', count, afterEvents),
      delayResponses: (ms) => {
        faults.delayMs = ms;
      },
      holdResponses: (kind) => faults.hold(kind),
      dropSubscriptions: (how = 'cancelled') => {
        for (const call of subscriptions) {
          if (how === 'connection') dropConnection(call);
          else if (how === 'unavailable') endRead(call, failures.unavailable());
          else if (how === 'too-slow') endRead(call, failures.timeout('Consumer too slow'));
          else endRead(call, failures.cancelled());
        }
      },
      setDelays: (list) => {
        delays = list;
      },
      loseLeader: () => members.loseLeader(),
      electLeader: () => members.elect(),
      scavenge: () => log.scavenge(),
      clear: () => faults.clear(),
    },
    stopListening,
    listenAgain,
    stop: async () => {
      await stopListening();
      connections.destroy();
      server.forceShutdown();
      log.close();
    },
  };
}

function drained(call, signal) {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      call.off('drain', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    call.once('drain', done);
    signal.addEventListener('abort', done);
  });
}
