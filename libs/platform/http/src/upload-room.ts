const MIB = 1024 * 1024;
/** So that one account, with its two largest files, leaves room for the file of another. */
const MAX_UPLOADS_PER_ACCOUNT = 2;
const MAX_BYTES = 64 * MIB;

/** Counts the uploads of each account, and the bytes of all. */
export class UploadRoom {
  private bytes = 0;
  private readonly counts = new Map<number | undefined, number>();

  /**
   * Reserves room for an upload.
   * @param bytes its length, or the maximum while that is unknown
   * @returns a function that releases the room, once; or a sentence that says why there is none
   */
  reserve(accountId: number | undefined, bytes: number): (() => void) | string {
    const count = this.counts.get(accountId) ?? 0;
    if (count >= MAX_UPLOADS_PER_ACCOUNT) {
      return `${MAX_UPLOADS_PER_ACCOUNT} uploads of this account are still under way`;
    }
    if (this.bytes + bytes > MAX_BYTES) return 'Too many files are being uploaded at once';
    this.bytes += bytes;
    this.counts.set(accountId, count + 1);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.bytes -= bytes;
      const others = (this.counts.get(accountId) ?? 0) - 1;
      if (others > 0) this.counts.set(accountId, others);
      else this.counts.delete(accountId);
    };
  }
}
