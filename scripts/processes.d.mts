export function lastMessage(lines: string[]): string | undefined;
export function makeFolder(folder: string, mode: number): void;
