/**
 * Deletes what the counter has stored in this browser about the person who was signed in: its pages, who they are, and the
 * texts about refused stampings, which name customers. What waits to be sent stays: it names nobody.
 */
globalThis.forgetPerson = async () => {
  if (globalThis.caches) await caches.delete('counter');
  await new Promise((resolve) => {
    const request = indexedDB.open('inkpad-counter');
    // Nothing was ever stored.
    request.addEventListener('upgradeneeded', () => request.transaction.abort());
    request.addEventListener('error', resolve);
    request.addEventListener('success', () => {
      const database = request.result;
      const names = ['refused', 'session'].filter((name) =>
        database.objectStoreNames.contains(name),
      );
      const transaction = database.transaction(names, 'readwrite');
      for (const name of names) transaction.objectStore(name).clear();
      for (const end of ['complete', 'abort']) {
        transaction.addEventListener(end, () => {
          database.close();
          resolve();
        });
      }
    });
  });
};
