export function lastMessage(lines: string[]): string | undefined;
export function makeFolder(folder: string, mode: number): void;
export function birthOf(pid: number): string | null;
export function listProcesses(): { pid: number; command: string }[];
