/** How long a rejected stamp is kept that nobody has read: it names a customer. */
const REFUSED_MS = 24 * 3600000;

/**
 * Keeps stampings and redemptions until the service has them: each with its receipt number, so that it counts once
 * however often it is sent, and with the time at which it happened. They survive a reload, a crash and a flat battery.
 */
globalThis.CounterQueue = class {
  constructor(accountId) {
    this.accountId = accountId;
    this.database = new Promise((resolve, reject) => {
      const request = indexedDB.open('inkpad-counter', 2);
      request.addEventListener('upgradeneeded', () => {
        const { result: database } = request;
        const names = ['waiting', 'refused'];
        for (const name of names.filter((one) => !database.objectStoreNames.contains(one))) {
          const store = database.createObjectStore(name, { keyPath: 'external_ref' });
          store.createIndex('account', 'account_id');
        }
        database.createObjectStore('session');
      });
      request.addEventListener('success', () => resolve(request.result));
      request.addEventListener('error', () => reject(request.error));
      // A tab of an earlier version is open.
      request.addEventListener('blocked', () => reject(new Error('the database is in use')));
    });
  }

  /** @returns the entries of a store, the oldest first */
  async list(name) {
    const entries = await this.run(name, 'readonly', (store) =>
      store.index('account').getAll(this.accountId),
    );
    return entries.sort((a, b) => a.occurred_at.localeCompare(b.occurred_at));
  }

  add(entry) {
    return this.run('waiting', 'readwrite', (store) =>
      store.put({ ...entry, account_id: this.accountId }),
    );
  }

  remove(externalRef) {
    return this.run('waiting', 'readwrite', (store) => store.delete(externalRef));
  }

  /** Moves an entry to those that the service has refused, in one transaction: it is always in one of the two. */
  async refuse(entry, text) {
    const database = await this.database;
    await new Promise((resolve, reject) => {
      const transaction = database.transaction(['waiting', 'refused'], 'readwrite');
      transaction.objectStore('waiting').delete(entry.external_ref);
      const rejection = { ...entry, account_id: this.accountId, text, refused_at: Date.now() };
      transaction.objectStore('refused').put(rejection);
      transaction.addEventListener('complete', resolve);
      transaction.addEventListener('abort', () => reject(transaction.error));
    });
  }

  /** @returns the rejections of a day, after deleting the older ones of every store */
  async listRefused() {
    const from = Date.now() - REFUSED_MS;
    const all = await this.run('refused', 'readonly', (store) => store.getAll());
    for (const { external_ref, refused_at } of all) {
      if (!(refused_at > from)) await this.dismiss(external_ref);
    }
    return this.list('refused');
  }

  /** Finds out with which session somebody is signed in, as far as this browser knows, and who that is. */
  readSession() {
    return this.run('session', 'readonly', (store) => store.get('present'));
  }

  writeSession(session) {
    return this.run('session', 'readwrite', (store) => store.put(session, 'present'));
  }

  dismiss(externalRef) {
    return this.run('refused', 'readwrite', (store) => store.delete(externalRef));
  }

  /** Resolves once the data are on the disk. */
  async run(name, mode, act) {
    const database = await this.database;
    return new Promise((resolve, reject) => {
      const transaction = database.transaction(name, mode, { durability: 'strict' });
      const request = act(transaction.objectStore(name));
      transaction.addEventListener('complete', () => resolve(request.result));
      transaction.addEventListener('abort', () => reject(transaction.error));
    });
  }
};
