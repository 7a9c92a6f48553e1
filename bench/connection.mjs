import net from 'node:net';

const END_OF_HEAD = Buffer.from('\r\n\r\n');
const SILENCE_MS = 30_000;

/**
 * One keep-alive connection with one request in flight at a time. Written on a raw socket, because a full HTTP client
 * would take as much of the processor as the service under test.
 */
export class Connection {
  received = Buffer.alloc(0);
  waiting = undefined;

  static async open(port) {
    const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    await new Promise((resolve, reject) => {
      socket.once('connect', resolve).once('error', reject);
    });
    return new Connection(socket);
  }

  constructor(socket) {
    this.socket = socket;
    socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error('no response within 30 s')));
    socket.on('data', (chunk) => this.read(chunk));
    socket.on('error', (error) => this.fail(error));
    socket.on('close', () => this.fail(new Error('the connection was closed')));
  }

  /** @param {Buffer} request a complete one */
  send(request) {
    return new Promise((resolve, reject) => {
      if (this.socket.destroyed) return reject(new Error('the connection was closed'));
      this.waiting = { resolve, reject };
      this.socket.write(request);
    });
  }

  close() {
    this.socket.destroy();
  }

  read(chunk) {
    this.received = this.received.length === 0 ? chunk : Buffer.concat([this.received, chunk]);
    const end = this.received.indexOf(END_OF_HEAD);
    if (end < 0) return;
    const head = this.received.latin1Slice(0, end);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) {
      this.socket.destroy(new Error('a response without a Content-Length'));
      return;
    }
    const whole = end + END_OF_HEAD.length + Number(length);
    if (this.received.length < whole) return;
    const body = this.received.subarray(end + END_OF_HEAD.length, whole);
    this.received = this.received.subarray(whole);
    const { waiting } = this;
    this.waiting = undefined;
    waiting?.resolve({ status: Number(head.slice(9, 12)), body });
  }

  fail(error) {
    this.waiting?.reject(error);
    this.waiting = undefined;
  }
}

/**
 * @param {string[]} [headers] further ones, as lines
 * @returns {Buffer} the bytes of a POST with a JSON body
 */
export function postRequest(path, token, body, headers = []) {
  const json = JSON.stringify(body);
  return Buffer.from(
    [
      `POST ${path} HTTP/1.1`,
      'Host: 127.0.0.1',
      `Authorization: Bearer ${token}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(json)}`,
      ...headers,
      '',
      json,
    ].join('\r\n'),
  );
}

/** @returns {Buffer} the bytes of a GET */
export function getRequest(path, token) {
  return Buffer.from(
    [`GET ${path} HTTP/1.1`, 'Host: 127.0.0.1', `Authorization: Bearer ${token}`, '', ''].join(
      '\r\n',
    ),
  );
}
