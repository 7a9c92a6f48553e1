/**
 * Deletes what the counter has stored in this browser about the person who was signed in: its pages, who they are, and the
 * texts about refused stampings, which name customers. What waits to be sent stays: it names nobody. Whoever waits for it,
 * such as to sign out, waits no longer than that: the storage of some browsers never calls back.
 */
globalThis.forgetPerson = () =>
  Promise.race([
    Promise.all([globalThis.caches && caches.delete('counter'), forgetTexts()]),
    new Promise((resolve) => setTimeout(resolve, 2500)),
  ]);

function forgetTexts() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('inkpad-counter');
    // Nothing was ever stored.
    request.addEventListener('upgradeneeded', () => request.transaction.abort());
    request.addEventListener('error', resolve);
    request.addEventListener('success', () => {
      const database = request.result;
      const names = ['refused', 'session'].filter((name) =>
        database.objectStoreNames.contains(name),
      );
      try {
        const transaction = database.transaction(names, 'readwrite');
        for (const name of names) transaction.objectStore(name).clear();
        transaction.addEventListener('complete', resolve);
        transaction.addEventListener('abort', () => reject(transaction.error));
      } catch (error) {
        reject(error);
      }
      database.close();
    });
  });
}
