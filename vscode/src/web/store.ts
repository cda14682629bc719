// What this browser keeps: texts in localStorage, and the key of the device in IndexedDB, where the service worker finds it.

/** Texts by key. */
export interface Store {
  /** The keys that begin with a text. */
  keys(begin: string): string[];
  get(key: string): string | undefined;
  /** undefined removes the text. */
  set(key: string, value: string | undefined): void;
}

const prefix = "duet ";

/** localStorage. A text that does not fit is not kept. */
export const local: Store = {
  keys: (begin) => {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith(prefix + begin)).map((key) => key.slice(prefix.length));
    } catch {
      return [];
    }
  },
  get: (key) => {
    try {
      return localStorage.getItem(prefix + key) ?? undefined;
    } catch {
      return undefined;
    }
  },
  set: (key, value) => {
    try {
      if (value === undefined) localStorage.removeItem(prefix + key);
      else localStorage.setItem(prefix + key, value);
    } catch {
      // The page has the text until it ends.
    }
  },
};

/** Reads JSON of the store. undefined: there is none, or it cannot be read. */
export function readJSON(store: Store, key: string): unknown {
  try {
    return JSON.parse(store.get(key) ?? "");
  } catch {
    return undefined;
  }
}

const [database, table, keyName] = ["duet", "device", "key"];

/** The key of this device. undefined: it is not paired. */
export function deviceKey(): Promise<string | undefined> {
  return inTable("readonly", (of) => of.get(keyName)).then((key) => (typeof key === "string" ? key : undefined));
}

/** Keeps the key of this device. undefined forgets it. */
export async function keepDeviceKey(key: string | undefined): Promise<void> {
  await inTable("readwrite", (of) => (key === undefined ? of.delete(keyName) : of.put(key, keyName)));
}

function inTable(mode: IDBTransactionMode, act: (table: IDBObjectStore) => IDBRequest): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(database, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(table);
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const db = opening.result;
      const transaction = db.transaction(table, mode);
      const asked = act(transaction.objectStore(table));
      transaction.oncomplete = () => {
        db.close();
        resolve(asked.result);
      };
      transaction.onerror = transaction.onabort = () => {
        db.close();
        reject(transaction.error);
      };
    };
  });
}
