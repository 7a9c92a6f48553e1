import { Injectable } from '@nestjs/common';
import { lookup } from 'node:dns/promises';

/** The system's own resolver, so that names are found here exactly as a connection would find them. */
@Injectable()
export class NameLookup {
  /** @throws when the name cannot be resolved */
  async addressesOf(name: string): Promise<{ address: string; family: number }[]> {
    return lookup(name, { all: true });
  }

  /** Nothing when the name does not resolve in time. */
  async addressesWithin(name: string, milliseconds: number): Promise<string[]> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<[]>((resolve) => {
      timer = setTimeout(() => resolve([]), milliseconds);
    });
    try {
      const found = await Promise.race([this.addressesOf(name), tooLate]);
      return found.map(({ address }) => address);
    } catch {
      // A name that does not resolve is accepted (contract section 9): it may do so later.
      return [];
    } finally {
      clearTimeout(timer);
    }
  }
}
