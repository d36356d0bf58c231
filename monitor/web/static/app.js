// The page of a run.
import { follow } from "./follow.js";

follow();
