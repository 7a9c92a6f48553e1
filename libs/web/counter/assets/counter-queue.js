/** How long a rejected stamp is kept that nobody has read: it names a customer. */
const REFUSED_MS = 24 * 3600000;
/** How long the storage of the browser may take for anything: some never call back. */
const STORAGE_MS = 1500;

/**
 * Keeps stampings and redemptions until the service has them: each with its receipt number, so that it counts once
 * however often it is sent, and with the time at which it happened. They survive a reload, a crash and a flat battery.
 */
globalThis.CounterQueue = class {
  /** @param session of whoever the page is for, which a database has from its start: the former one may have been deleted */
  constructor(accountId, session) {
    this.accountId = accountId;
    this.session = session;
    /** Of the open database. A failure stays until `close`, so that it is waited for once. */
    this.database = null;
  }

  open() {
    this.database ??= openDatabase(this.session, (lost) => {
      if (this.database === lost) this.database = null;
    });
    return this.database;
  }

  /** Asks the browser not to delete what waits when the phone is short of space. */
  async persist() {
    if (navigator.storage && navigator.storage.persist) await navigator.storage.persist();
  }

  /** Lets the next use open the database again. */
  close() {
    const { database } = this;
    this.database = null;
    if (database) database.then((open) => open.close()).catch(() => undefined);
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
  refuse(entry, text) {
    return this.run(['waiting', 'refused'], 'readwrite', (waiting, refused) => {
      waiting.delete(entry.external_ref);
      return refused.put({ ...entry, account_id: this.accountId, text, refused_at: Date.now() });
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

  /**
   * Resolves once the data are on the disk. Browsers close the database of an open page: iOS in the background, others when
   * site data are cleared. Then it is opened again, once.
   * @param names of one object store, or several
   */
  async run(names, mode, act) {
    const opening = this.open();
    const database = await opening;
    try {
      return await transact(database, { names, mode, act });
    } catch (error) {
      console.debug(error);
      if (this.database === opening) this.close();
    }
    const reopening = this.open();
    try {
      return await transact(await reopening, { names, mode, act });
    } catch (error) {
      // Nobody has to wait for it a second time.
      if (error.isSilent && this.database === reopening) this.database = createFailure(error);
      throw error;
    }
  }
};

/** @param onLost gets the promise of a database that the browser has closed */
function openDatabase(session, onLost) {
  const opening = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('the database does not open')), STORAGE_MS);
    const request = indexedDB.open('inkpad-counter', 2);
    request.addEventListener('upgradeneeded', () => {
      const { result: database } = request;
      const names = ['waiting', 'refused'];
      for (const name of names.filter((one) => !database.objectStoreNames.contains(one))) {
        const entries = database.createObjectStore(name, { keyPath: 'external_ref' });
        entries.createIndex('account', 'account_id');
      }
      const store = database.createObjectStore('session');
      if (session) store.put(session, 'present');
    });
    request.addEventListener('success', () => {
      const { result: database } = request;
      database.addEventListener('close', () => onLost(opening));
      // A page of another version needs it for itself.
      database.addEventListener('versionchange', () => {
        database.close();
        onLost(opening);
      });
      resolve(database);
    });
    request.addEventListener('error', () => reject(request.error));
    // A tab of an earlier version is open.
    request.addEventListener('blocked', () => reject(new Error('the database is in use')));
  });
  return opening;
}

function transact(database, { names, mode, act }) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(names, mode, { durability: 'strict' });
    let request;
    const timer = setTimeout(() => {
      reject(Object.assign(new Error('the database does not respond'), { isSilent: true }));
      // What is stored after all would be sent a second time; its receipt number lets it count once.
      transaction.abort();
    }, STORAGE_MS);
    transaction.addEventListener('complete', () => {
      clearTimeout(timer);
      // Without one, it was not even begun.
      if (request) resolve(request.result);
    });
    transaction.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(transaction.error ?? new Error('the transaction was aborted'));
    });
    request = act(...[names].flat().map((name) => transaction.objectStore(name)));
  });
}

function createFailure(cause) {
  const failure = Promise.reject(cause);
  // Whoever awaits it handles it.
  failure.catch(() => undefined);
  return failure;
}
