export function placeImagePackages(root: string, folder: string): void;
export function describeImagePackages(folder: string): {
  components: { group?: string; name: string; version: string }[];
};
