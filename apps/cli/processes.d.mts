export function findLastMessage(lines: string[]): string | undefined;
export function createFolder(folder: string, mode: number): void;
export function getStartTime(pid: number): string | null;
export function listProcesses(): { pid: number; command: string }[];
