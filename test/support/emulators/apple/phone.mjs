import { randomBytes } from 'node:crypto';
import { listFields, readPass } from './pass-reader.mjs';

/** Of Safari, which opens the link. */
const BROWSER = {
  'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Safari/604.1',
};

/** An iPhone with a Wallet, as far as passes are concerned. Its rules are listed in README.md. */
export class Phone {
  /** The notifications that it has shown. @type {string[]} */
  messages = [];
  /** Responses that violate the web service's protocol. @type {string[]} */
  complaints = [];
  /** Rounds of asking and fetching that are over. */
  rounds = 0;
  /** @type {Map<string, { pass: object; files: Map<string, Buffer>; modified: string | null }>} */
  #passes = new Map();
  #tags = new Map();
  #round = Promise.resolve();

  /**
   * @param {{ root: string; apns: import('./apns.mjs').Apns; reaches?: (url: string) => string }} world
   *   reaches: where this test finds what has that public address
   */
  constructor({ root, apns, reaches = (url) => url }) {
    this.root = root;
    this.apns = apns;
    this.reaches = reaches;
    this.library = randomBytes(16).toString('hex');
    this.pushToken = randomBytes(32).toString('hex');
    apns.register(this.pushToken, () => void this.refresh());
  }

  /** Opens a link, shows the pass, and adds it. */
  async add(link) {
    const response = await fetch(this.reaches(link), { redirect: 'manual', headers: BROWSER });
    const type = response.headers.get('content-type');
    if (response.status !== 200 || type !== 'application/vnd.apple.pkpass') {
      throw new Error(`${link} responded with ${response.status} ${type}`);
    }
    const read = readPass(Buffer.from(await response.arrayBuffer()), this.root);
    const { pass } = read;
    this.#passes.set(pass.serialNumber, { ...read, modified: null });
    if (pass.webServiceURL) await this.#register(pass);
    return pass.serialNumber;
  }

  /** Returns the fields that the phone shows of a pass. */
  shows(serial) {
    const pass = this.#passes.get(serial);
    if (!pass) throw new Error(`no pass ${serial}`);
    return pass;
  }

  /** The owner removes the pass from the Wallet. */
  async remove(serial) {
    const { pass } = this.shows(serial);
    this.#passes.delete(serial);
    await this.#ask('DELETE', pass, `${this.#registrations(pass)}/${serial}`, [200]);
  }

  /** Another token, as after a restored backup. */
  async renewPushToken() {
    this.apns.unregister(this.pushToken);
    this.pushToken = randomBytes(32).toString('hex');
    this.apns.register(this.pushToken, () => void this.refresh());
    for (const { pass } of this.#passes.values()) await this.#register(pass);
  }

  /** Asks what has changed, and fetches it: after a push, and now and then without one. */
  refresh() {
    this.#round = this.#round.then(() => this.#refresh());
    return this.#round;
  }

  async #refresh() {
    try {
      const services = new Map(
        [...this.#passes.values()].map(({ pass }) => [pass.passTypeIdentifier, pass]),
      );
      for (const [type, pass] of services) {
        const tag = this.#tags.get(type);
        const since = tag === undefined ? '' : `?passesUpdatedSince=${encodeURIComponent(tag)}`;
        const path = `${this.#registrations(pass)}${since}`;
        const response = await this.#ask('GET', pass, path, [200, 204], { bare: true });
        if (response.status !== 200) continue;
        const { serialNumbers, lastUpdated } = await response.json();
        // PHONE-03
        if (!serialNumbers?.length) this.complaints.push('200 with no serial number');
        for (const serial of serialNumbers) if (this.#passes.has(serial)) await this.#fetch(serial);
        this.#tags.set(type, lastUpdated);
      }
    } catch (error) {
      this.complaints.push(String(error));
    } finally {
      this.rounds += 1;
    }
  }

  async #fetch(serial) {
    const { pass: old, modified } = this.shows(serial);
    const path = `/v1/passes/${old.passTypeIdentifier}/${serial}`;
    const response = await this.#ask('GET', old, path, [200, 304], {
      headers: modified === null ? {} : { 'if-modified-since': modified },
    });
    if (response.status !== 200) return;
    const read = readPass(Buffer.from(await response.arrayBuffer()), this.root);
    // PHONE-04
    if (read.pass.serialNumber !== serial) throw new Error('the serial number has changed');
    this.#passes.set(serial, { ...read, modified: response.headers.get('last-modified') });
    const message = findChangeMessage(old, read.pass);
    if (message !== undefined) this.messages.push(message);
  }

  async #register(pass) {
    const path = `${this.#registrations(pass)}/${pass.serialNumber}`;
    const body = JSON.stringify({ pushToken: this.pushToken });
    await this.#ask('POST', pass, path, [200, 201], { body });
  }

  #registrations({ passTypeIdentifier }) {
    return `/v1/devices/${this.library}/registrations/${passTypeIdentifier}`;
  }

  async #ask(method, pass, path, expected, { bare = false, headers = {}, body } = {}) {
    const url = this.reaches(`${pass.webServiceURL}${path}`);
    const response = await fetch(url, {
      method,
      headers: {
        ...(bare ? {} : { authorization: `ApplePass ${pass.authenticationToken}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    if (!expected.includes(response.status)) {
      this.complaints.push(`${method} ${path} responded with ${response.status}`);
      throw new Error(`${method} ${path} responded with ${response.status}`);
    }
    return response;
  }
}

/**
 * Finds the notification that a phone shows when a pass is replaced: the change message of the one field that has one and another value than
 * before, or a line that says nothing when there are several (PHONE-05).
 */
export function findChangeMessage(before, after) {
  const old = new Map(listFields(before).map(({ key, value }) => [key, value]));
  const changed = listFields(after).filter(
    ({ key, value, changeMessage }) => changeMessage !== undefined && old.get(key) !== value,
  );
  const [only, ...others] = changed;
  if (!only) return undefined;
  if (others.length > 0 || !only.changeMessage.includes('%@')) return 'Card changed';
  return only.changeMessage.replaceAll('%@', String(only.value));
}
