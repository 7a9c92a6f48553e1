import type { TestDatabase } from './database.js';

/** Creates an empty database in an encoding on the same server. @returns its address, for the owner */
export async function databaseIn(encoding: string, beside: TestDatabase): Promise<string> {
  const url = new URL(beside.ownerUrl);
  url.pathname += `_${encoding.toLowerCase()}`;
  await beside.query(
    `create database ${nameIn(url.href)} encoding '${encoding}' locale 'C' template template0`,
  );
  return url.href;
}

export function nameIn(url: string): string {
  return new URL(url).pathname.slice(1);
}
