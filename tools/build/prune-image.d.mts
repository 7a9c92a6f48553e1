export function isRemovedPackage(name: string): boolean;
export function pruneImage(folder: string): number;
export function listPackages(folder: string): { name: string; place: string }[];
export function measure(place: string): number;
